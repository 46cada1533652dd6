//! [`Ambient`]: the credentials that the machine, the container or the environment has.
//!
//! Looked for in this order: `AWS_ACCESS_KEY_ID` and its companions, a profile of the shared credentials file, the
//! address that a container was given, the metadata of an EC2 instance. Roles that are assumed by a web identity token
//! or by single sign-on are left to other [`CredentialsSource`]s.

use std::error::Error;
use std::fmt;
use std::time::{Duration, Instant};

use hapax_core::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;

use super::{Credentials, CredentialsSource};
use crate::connection::{Connector, Endpoint, exchange};

/// Temporary credentials are handed out at least this long before the ones before them end.
const REFRESH_EVERY: Duration = Duration::from_secs(5 * 60);

/// How long a metadata service, which is on the same machine, may take.
const METADATA_TIMEOUT: Duration = Duration::from_secs(2);

const CONTAINER_HOST: &str = "http://169.254.170.2";
const INSTANCE_HOST: &str = "http://169.254.169.254";
const ROLE_PATH: &str = "/latest/meta-data/iam/security-credentials/";

type Cause = Box<dyn Error + Send + Sync>;
type Environment = dyn Fn(&str) -> Option<String> + Send + Sync;

/// What the surroundings have; what is temporary is asked for again in time.
pub(crate) struct Ambient {
    environment: Box<Environment>,
    known: Mutex<Option<(Credentials, Instant)>>,
}

impl Ambient {
    pub(crate) fn new(environment: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { environment: Box::new(environment), known: Mutex::new(None) }
    }

    async fn find(&self) -> Result<Credentials, Cause> {
        let environment = &*self.environment;
        if let Some(key) = environment("AWS_ACCESS_KEY_ID") {
            let secret = environment("AWS_SECRET_ACCESS_KEY")
                .ok_or("AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY is not")?;
            let found = Credentials::new(key, secret);
            return Ok(match environment("AWS_SESSION_TOKEN") {
                Some(token) => found.with_session_token(token),
                None => found,
            });
        }
        if let Some(found) = from_file(environment) {
            return Ok(found);
        }
        if let Some(found) = from_container(environment).await? {
            return Ok(found);
        }
        if environment("AWS_EC2_METADATA_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Err("neither the environment nor a file nor a container has any".into());
        }
        from_instance()
            .await
            .map_err(|_| "neither the environment nor a file nor a container nor an instance has any".into())
    }
}

impl fmt::Debug for Ambient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ambient")
    }
}

impl CredentialsSource for Ambient {
    fn credentials(&self) -> BoxFuture<'_, Result<Credentials, Cause>> {
        Box::pin(async move {
            if let Some((known, since)) = &*self.known.lock()
                && since.elapsed() < REFRESH_EVERY
            {
                return Ok(known.clone());
            }
            let found = self.find().await;
            let mut known = self.known.lock();
            match found {
                Ok(found) => {
                    *known = Some((found.clone(), Instant::now()));
                    Ok(found)
                }
                // What was handed out last may still hold; the service knows.
                Err(error) => known.as_ref().map(|(known, _)| known.clone()).ok_or(error),
            }
        })
    }
}

fn from_file(environment: &Environment) -> Option<Credentials> {
    let path = environment("AWS_SHARED_CREDENTIALS_FILE")
        .or_else(|| environment("HOME").map(|home| format!("{home}/.aws/credentials")))?;
    let text = std::fs::read_to_string(path).ok()?;
    profile(&text, &environment("AWS_PROFILE").unwrap_or_else(|| "default".to_owned()))
}

/// The keys of one profile in the text of a shared credentials file.
fn profile(text: &str, name: &str) -> Option<Credentials> {
    let begin = format!("[{name}]");
    let lines = text.lines().map(str::trim).skip_while(|line| *line != begin).skip(1);
    let pairs: Vec<(&str, &str)> = lines
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once('='))
        .map(|(field, value)| (field.trim(), value.trim()))
        .collect();
    let value = |field| pairs.iter().find(|(name, _)| *name == field).map(|(_, value)| *value);
    let found = Credentials::new(value("aws_access_key_id")?, value("aws_secret_access_key")?);
    Some(match value("aws_session_token") {
        Some(token) => found.with_session_token(token),
        None => found,
    })
}

async fn from_container(environment: &Environment) -> Result<Option<Credentials>, Cause> {
    let full = environment("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    let relative = environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    let Some(url) = relative.map(|path| format!("{CONTAINER_HOST}{path}")).or(full) else { return Ok(None) };
    let token = match environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
        Some(file) => Some(std::fs::read_to_string(file)?.trim().to_owned()),
        None => environment("AWS_CONTAINER_AUTHORIZATION_TOKEN"),
    };
    let headers: Vec<(&str, &str)> = token.iter().map(|token| ("authorization", token.as_str())).collect();
    temporary(&ask("GET", &url, &headers).await?).map(Some)
}

async fn from_instance() -> Result<Credentials, Cause> {
    let ttl = [("x-aws-ec2-metadata-token-ttl-seconds", "300")];
    let token = ask("PUT", &format!("{INSTANCE_HOST}/latest/api/token"), &ttl).await?;
    let headers = [("x-aws-ec2-metadata-token", std::str::from_utf8(&token)?)];
    let role = ask("GET", &format!("{INSTANCE_HOST}{ROLE_PATH}"), &headers).await?;
    let role = std::str::from_utf8(&role)?.lines().next().ok_or("the instance has no role")?.to_owned();
    temporary(&ask("GET", &format!("{INSTANCE_HOST}{ROLE_PATH}{role}"), &headers).await?)
}

fn temporary(body: &[u8]) -> Result<Credentials, Cause> {
    let body: Value = serde_json::from_slice(body)?;
    let field = |name: &str| body[name].as_str().ok_or("the answer holds no credentials");
    Ok(Credentials::new(field("AccessKeyId")?, field("SecretAccessKey")?).with_session_token(field("Token")?))
}

async fn ask(method: &str, url: &str, headers: &[(&str, &str)]) -> Result<Vec<u8>, Cause> {
    let (endpoint, path) = Endpoint::parse(url).ok_or("the address of credentials is no URL")?;
    let mut request = http::Request::builder().method(method).uri(path).header("host", endpoint.authority());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(http_body_util::Full::default())?;
    let asked = async {
        let mut sender = Connector::default().connect(&endpoint).await.map_err(|_| "no connection")?;
        exchange(&mut sender, request).await.map_err(|_| "no answer")
    };
    let (head, body) = tokio::time::timeout(METADATA_TIMEOUT, asked).await??;
    if head.status.is_success() { Ok(body) } else { Err("refused".into()) }
}

#[cfg(test)]
mod tests;
