//! Every source over real HTTP on loopback and real files, with an environment of its own.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use reqsign_core::time::Timestamp;
use reqsign_core::{Context, HttpSend, StaticEnv};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{CredentialChain, REFRESH_EVERY, USE_AT_LEAST};
use crate::credentials::context::{Files, HttpClient};
use crate::credentials::{Credentials, CredentialsSource};

const LIMIT: Duration = Duration::from_secs(120);
const NEVER: &str = "2099-01-01T00:00:00Z";

fn context(variables: &[(&str, &str)], home: &Path) -> Context {
    let envs: HashMap<String, String> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let env = StaticEnv { home_dir: Some(home.to_owned()), envs };
    Context::new().with_env(env).with_file_read(Files).with_http_send(HttpClient::default())
}

fn chain_with(variables: &[(&str, &str)], home: &Path) -> CredentialChain {
    CredentialChain::new(context(variables, home), "eu-central-1", LIMIT)
}

async fn found(variables: &[(&str, &str)], home: &Path) -> Credentials {
    chain_with(variables, home).credentials().await.unwrap()
}

async fn refused(chain: &CredentialChain) -> String {
    chain.credentials().await.unwrap_err().to_string()
}

fn temporary(key: &str) -> Credentials {
    Credentials::new(key, "secret").with_session_token("token")
}

/// An HTTP server that answers requests with status and body, and keeps the requests.
struct Server {
    url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start(answer: impl Fn(&str) -> (u16, String) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = requests.clone();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let request = read_request(&mut stream).await;
                let (status, body) = answer(&request);
                kept.lock().push(request);
                let length = body.len();
                let response = format!("HTTP/1.1 {status} x\r\nContent-Length: {length}\r\n\r\n{body}");
                stream.write_all(response.as_bytes()).await.unwrap();
            }
        });
        Self { url, requests }
    }

    fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut *self.requests.lock())
    }
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut request = String::new();
    let mut piece = [0; 4096];
    loop {
        let read = stream.read(&mut piece).await.unwrap();
        request.push_str(std::str::from_utf8(&piece[..read]).unwrap());
        let Some((head, body)) = request.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if read == 0 || body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
            return request;
        }
    }
}

fn container(key: &str, expiration: &str) -> String {
    format!(
        r#"{{"AccessKeyId": "{key}", "SecretAccessKey": "secret", "Token": "token", "Expiration": "{expiration}"}}"#
    )
}

/// Makes the loaded credentials this old, with this time left.
fn age(chain: &CredentialChain, age: Duration, left: Duration) {
    let mut state = chain.0.state.lock();
    let loaded = state.loaded.as_mut().unwrap();
    loaded.at = loaded.at.checked_sub(age).unwrap();
    loaded.expires_at = Some(Timestamp::now() + left);
}

#[tokio::test]
async fn the_environment_comes_first() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join(".aws")).unwrap();
    std::fs::write(
        home.path().join(".aws/credentials"),
        "[default]\naws_access_key_id=a\naws_secret_access_key=b\n",
    )
    .unwrap();
    let long_lived = [("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "canary-secret")];
    assert_eq!(found(&long_lived, home.path()).await, Credentials::new("key", "canary-secret"));
    let with_token = [&long_lived[..], &[("AWS_SESSION_TOKEN", "canary-token")]].concat();
    let chain = chain_with(&with_token, home.path());
    let found = chain.credentials().await.unwrap();
    assert_eq!(found, Credentials::new("key", "canary-secret").with_session_token("canary-token"));
    assert!(!format!("{found:?} {chain:?}").contains("canary"));
    let half = refused(&chain_with(&long_lived[..1], home.path())).await;
    assert!(half.contains("AWS_SECRET_ACCESS_KEY is not"), "{half}");
}

#[tokio::test]
async fn profiles_come_from_either_shared_file() {
    let home = tempfile::tempdir().unwrap();
    let (credentials, config) = (home.path().join("credentials"), home.path().join("config"));
    let keys = "aws_access_key_id = second\naws_secret_access_key = a+b/c\naws_session_token = token==\n";
    std::fs::write(
        &credentials,
        format!("[default]\naws_access_key_id=first\naws_secret_access_key=one\n\n# mine\n[shop]\n{keys}"),
    )
    .unwrap();
    let text = "[profile ops]\naws_access_key_id = third\naws_secret_access_key = three\n";
    std::fs::write(&config, text).unwrap();
    let files = [
        ("AWS_SHARED_CREDENTIALS_FILE", credentials.to_str().unwrap()),
        ("AWS_CONFIG_FILE", config.to_str().unwrap()),
    ];
    let of = async |name| found(&[&files[..], &[("AWS_PROFILE", name)]].concat(), home.path()).await;
    assert_eq!(found(&files, home.path()).await, Credentials::new("first", "one"));
    assert_eq!(of("shop").await, Credentials::new("second", "a+b/c").with_session_token("token=="));
    assert_eq!(of("ops").await, Credentials::new("third", "three"));
}

#[tokio::test]
async fn single_sign_on_uses_the_cached_token() {
    let server = Server::start(|_| {
        let keys = r#""accessKeyId": "key", "secretAccessKey": "secret", "sessionToken": "token""#;
        (200, format!(r#"{{"roleCredentials": {{{keys}, "expiration": 4070908800000}}}}"#))
    })
    .await;
    let home = tempfile::tempdir().unwrap();
    let cache = home.path().join(".aws/sso/cache");
    std::fs::create_dir_all(&cache).unwrap();
    let profile = "[profile work]\nsso_start_url = https://shop.awsapps.com/start\nsso_region = eu-central-1\n\
                   sso_account_id = 123456789012\nsso_role_name = Orders\n";
    std::fs::write(home.path().join(".aws/config"), profile).unwrap();
    // The file's name is the SHA-1 of the start URL.
    let token = cache.join("20d891dca86750d4e829b4c761c9817f4b93df76.json");
    let cached = |expires: &str| format!(r#"{{"accessToken": "pass", "expiresAt": "{expires}"}}"#);
    std::fs::write(&token, cached(NEVER)).unwrap();
    let variables = [("AWS_PROFILE", "work"), ("AWS_SSO_ENDPOINT", &server.url)];
    assert_eq!(found(&variables, home.path()).await, temporary("key"));
    let request = server.take_requests().concat();
    assert!(request.contains("role_name=Orders&account_id=123456789012"), "{request}");
    assert!(request.contains("x-amz-sso_bearer_token: pass\r\n"), "{request}");

    std::fs::write(&token, cached("2020-01-01T00:00:00Z")).unwrap();
    let expired = refused(&chain_with(&variables, home.path())).await;
    assert!(expired.contains("single sign-on") && expired.contains("aws sso login"), "{expired}");
}

/// Sends requests for the security token service to a server on loopback.
#[derive(Debug)]
struct Redirected {
    url: String,
    client: HttpClient,
}

impl HttpSend for Redirected {
    async fn http_send(
        &self,
        mut request: http::Request<Bytes>,
    ) -> reqsign_core::Result<http::Response<Bytes>> {
        assert_eq!(request.uri().to_string(), "https://sts.eu-central-1.amazonaws.com/");
        *request.uri_mut() = format!("{}/", self.url).parse()?;
        self.client.http_send(request).await
    }
}

#[tokio::test]
async fn web_identity_assumes_the_role() {
    let server = Server::start(|_| {
        let keys = "<AccessKeyId>key</AccessKeyId><SecretAccessKey>secret</SecretAccessKey>\
                    <SessionToken>token</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration>";
        let name = "AssumeRoleWithWebIdentity";
        let result = format!("<{name}Result><Credentials>{keys}</Credentials></{name}Result>");
        (200, format!("<{name}Response>{result}</{name}Response>"))
    })
    .await;
    let home = tempfile::tempdir().unwrap();
    let token = home.path().join("token");
    std::fs::write(&token, "service-account\n").unwrap();
    let variables = [
        ("AWS_WEB_IDENTITY_TOKEN_FILE", token.to_str().unwrap()),
        ("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/orders"),
    ];
    let redirected = Redirected { url: server.url.clone(), client: HttpClient::default() };
    let context = context(&variables, home.path()).with_http_send(redirected);
    let chain = CredentialChain::new(context, "eu-central-1", LIMIT);
    assert_eq!(chain.credentials().await.unwrap(), temporary("key"));
    let request = server.take_requests().concat();
    for part in ["WebIdentityToken=service-account&", "RoleSessionName=hapax", "role%2Forders"] {
        assert!(request.contains(part), "{request}");
    }

    std::fs::remove_file(&token).unwrap();
    let lost = refused(&chain_with(&variables, home.path())).await;
    assert!(lost.starts_with("web identity failed: failed to read web identity token file"), "{lost}");
}

#[tokio::test]
async fn a_container_is_queried_with_its_token_and_only_once() {
    let server = Server::start(|_| (200, container("key", NEVER))).await;
    let home = tempfile::tempdir().unwrap();
    let token = home.path().join("token");
    std::fs::write(&token, "pass\n").unwrap();
    let url = format!("{}/credentials", server.url);
    let chain = chain_with(
        &[
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &url),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token.to_str().unwrap()),
        ],
        home.path(),
    );
    for _loaded_or_cached in 0..2 {
        assert_eq!(chain.credentials().await.unwrap(), temporary("key"));
    }
    let requests = server.take_requests();
    assert_eq!(requests.len(), 1);
    assert!(requests[0].starts_with("GET /credentials HTTP/1.1\r\n"), "{requests:?}");
    assert!(requests[0].contains("authorization: pass\r\n"), "{requests:?}");
}

#[tokio::test]
async fn an_instance_is_queried_with_a_session_token() {
    let server = Server::start(|request| {
        let is_allowed = request.contains("x-aws-ec2-metadata-token: session\r\n");
        let role = "/latest/meta-data/iam/security-credentials/";
        match request.split(' ').nth(1).unwrap() {
            "/latest/api/token" if request.starts_with("PUT ") => (200, "session".to_owned()),
            path if path == role && is_allowed => (200, "orders".to_owned()),
            path if path == format!("{role}orders") && is_allowed => {
                (200, container("key", NEVER).replacen('{', r#"{"Code": "Success", "#, 1))
            }
            _ => (401, String::new()),
        }
    })
    .await;
    let home = tempfile::tempdir().unwrap();
    let variables = [("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.url.as_str())];
    assert_eq!(found(&variables, home.path()).await, temporary("key"));
    let disabled = [&variables[..], &[("AWS_EC2_METADATA_DISABLED", "True")]].concat();
    let none = refused(&chain_with(&disabled, home.path())).await;
    assert!(none.contains("neither"), "{none}");
}

/// A container whose keys are numbered, and fail from the second one on if that is asked for.
async fn numbered(fails_later: bool) -> (Server, CredentialChain, tempfile::TempDir) {
    let calls = std::sync::atomic::AtomicUsize::new(0);
    let server = Server::start(move |_| match calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
        number if number > 0 && fails_later => (500, "outage".to_owned()),
        number => (200, container(&number.to_string(), NEVER)),
    })
    .await;
    let home = tempfile::tempdir().unwrap();
    let chain = chain_with(&[("AWS_CONTAINER_CREDENTIALS_FULL_URI", &server.url)], home.path());
    assert_eq!(chain.credentials().await.unwrap(), temporary("0"));
    (server, chain, home)
}

#[tokio::test]
async fn credentials_are_replaced_before_they_expire() {
    let (_server, chain, _home) = numbered(false).await;
    age(&chain, USE_AT_LEAST, REFRESH_EVERY / 2);
    // Calls do not wait for the new ones.
    assert_eq!(chain.credentials().await.unwrap(), temporary("0"));
    while chain.credentials().await.unwrap() != temporary("1") {
        tokio::task::yield_now().await;
    }
    // Files may change, and this machine's clock may be wrong.
    age(&chain, REFRESH_EVERY, LIMIT * 100);
    while chain.credentials().await.unwrap() != temporary("2") {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn expired_credentials_are_loaded_again() {
    let (_server, chain, _home) = numbered(false).await;
    age(&chain, USE_AT_LEAST, Duration::ZERO);
    assert_eq!(chain.credentials().await.unwrap(), temporary("1"));
}

#[tokio::test]
async fn an_outage_is_an_error_only_when_the_credentials_have_expired() {
    let (server, chain, _home) = numbered(true).await;
    age(&chain, REFRESH_EVERY, LIMIT);
    while server.requests.lock().len() < 2 {
        assert_eq!(chain.credentials().await.unwrap(), temporary("0"));
        tokio::task::yield_now().await;
    }
    age(&chain, REFRESH_EVERY, Duration::ZERO);
    let outage = refused(&chain).await;
    assert!(outage.starts_with("the container's credentials endpoint failed: ECS metadata"), "{outage}");
}

#[tokio::test]
async fn a_source_that_hangs_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let home = tempfile::tempdir().unwrap();
    let context = context(&[("AWS_CONTAINER_CREDENTIALS_FULL_URI", &url)], home.path());
    let chain = CredentialChain::new(context, "eu-central-1", Duration::from_millis(200));
    assert_eq!(refused(&chain).await, "the container's credentials endpoint did not answer in time");
}
