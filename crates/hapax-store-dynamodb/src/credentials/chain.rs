//! [`CredentialChain`]: the credentials of the environment, the shared files, the container or the machine.
//!
//! The sources are those of the `reqsign` crates, in the order of AWS's SDKs. The first one that is configured is used; if
//! it fails, the chain fails, so that an outage never selects another identity. Temporary credentials are replaced in the
//! background before they expire.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hapax_core::BoxFuture;
use parking_lot::Mutex;
use reqsign_aws_core::{
    AssumeRoleWithWebIdentityCredentialProvider, Credential, ECSCredentialProvider, EnvCredentialProvider,
    IMDSv2CredentialProvider, ProfileCredentialProvider, SSOCredentialProvider,
};
use reqsign_core::time::Timestamp;
use reqsign_core::{Context, ProvideCredentialDyn};
use tokio::sync::OwnedMutexGuard;
use tokio::time::timeout;

use super::{Credentials, CredentialsSource};

/// Credentials are loaded again after this long, and this long before they expire. The former also works if this machine's
/// clock is wrong, and picks up files that have changed.
const REFRESH_EVERY: Duration = Duration::from_secs(5 * 60);

/// Loaded credentials are used for this long even if they look expired: the clock may be wrong, and the metadata service
/// hands out expired credentials during an outage that the service still accepts.
const USE_AT_LEAST: Duration = Duration::from_secs(60);

/// Back-off after a failed load. Calls in between fail with the same reason.
const RETRY_AFTER: Duration = Duration::from_secs(1);

type Cause = Box<dyn Error + Send + Sync>;
type Provider = Box<dyn ProvideCredentialDyn<Credential = Credential>>;

/// The default source of credentials.
pub(crate) struct CredentialChain(Arc<Shared>);

struct Shared {
    context: Context,
    /// The region of the security token service, unless the environment names one.
    region: String,
    /// How long a call waits for credentials.
    limit: Duration,
    state: Mutex<State>,
    /// Held while credentials are loaded.
    loading: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct State {
    loaded: Option<Loaded>,
    failure: Option<(String, Instant)>,
    /// The source that was queried last.
    source: &'static str,
}

struct Loaded {
    credentials: Credentials,
    expires_at: Option<Timestamp>,
    at: Instant,
}

impl CredentialChain {
    /// A call waits for credentials for at most `limit`.
    pub(crate) fn new(context: Context, region: &str, limit: Duration) -> Self {
        let (region, state, loading) = (region.to_owned(), Mutex::default(), Arc::default());
        Self(Arc::new(Shared { context, region, limit, state, loading }))
    }
}

impl fmt::Debug for CredentialChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CredentialChain").finish_non_exhaustive()
    }
}

impl CredentialsSource for CredentialChain {
    fn credentials(&self) -> BoxFuture<'_, Result<Credentials, Cause>> {
        Box::pin(async move {
            if let Some((credentials, is_due)) = self.0.cached() {
                if is_due {
                    self.0.refresh_in_background();
                }
                return Ok(credentials);
            }
            match timeout(self.0.limit, self.0.wait_for_load()).await {
                Ok(loaded) => loaded.map_err(Into::into),
                Err(_elapsed) => Err(format!("{} did not answer in time", self.0.state.lock().source).into()),
            }
        })
    }
}

impl Shared {
    /// The credentials to use, and whether they must be loaded again.
    fn cached(&self) -> Option<(Credentials, bool)> {
        let state = self.state.lock();
        let loaded = state.loaded.as_ref()?;
        let (age, now) = (loaded.at.elapsed(), Timestamp::now());
        let expires_within = |span| loaded.expires_at.is_some_and(|at| at <= now + span);
        if age >= USE_AT_LEAST && expires_within(Duration::ZERO) {
            return None;
        }
        let is_due = age >= REFRESH_EVERY || (age >= USE_AT_LEAST && expires_within(REFRESH_EVERY));
        Some((loaded.credentials.clone(), is_due && state.recent_failure().is_none()))
    }

    fn refresh_in_background(self: &Arc<Self>) {
        let Ok(turn) = self.loading.clone().try_lock_owned() else { return };
        let shared = self.clone();
        tokio::spawn(async move {
            if let Err(why) = shared.load(turn).await {
                tracing::warn!(
                    why,
                    "credentials cannot be refreshed; using the current ones until they expire"
                );
            }
        });
    }

    async fn wait_for_load(self: &Arc<Self>) -> Result<Credentials, String> {
        let turn = self.loading.clone().lock_owned().await;
        // Another call may have loaded them meanwhile.
        if let Some((credentials, _)) = self.cached() {
            return Ok(credentials);
        }
        if let Some(why) = self.state.lock().recent_failure() {
            return Err(why.to_owned());
        }
        // In a task of its own, so that a call which times out does not abort it.
        let loading = tokio::spawn(self.clone().load(turn));
        loading.await.unwrap_or_else(|_| Err("loading them was cancelled".to_owned()))
    }

    async fn load(self: Arc<Self>, _turn: OwnedMutexGuard<()>) -> Result<Credentials, String> {
        let found = self.find().await;
        let mut state = self.state.lock();
        match found {
            Ok(found) => {
                let (credentials, expires_at) = (Credentials::from(&found), found.expires_in);
                let loaded = Loaded { credentials: credentials.clone(), expires_at, at: Instant::now() };
                (state.loaded, state.failure) = (Some(loaded), None);
                Ok(credentials)
            }
            Err(why) => {
                state.failure = Some((why.clone(), Instant::now()));
                Err(why)
            }
        }
    }

    /// Queries the sources in order.
    async fn find(&self) -> Result<Credential, String> {
        let is_set = |name| self.context.env_var(name).is_some();
        if is_set("AWS_ACCESS_KEY_ID") && !is_set("AWS_SECRET_ACCESS_KEY") {
            return Err("AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY is not".to_owned());
        }
        for (name, source) in self.sources() {
            self.state.lock().source = name;
            match source.provide_credential_dyn(&self.context).await {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => {}
                Err(error) => return Err(format!("{name} failed: {}", message(&error))),
            }
        }
        Err("neither the environment nor the shared files nor the container nor the machine has any"
            .to_owned())
    }

    fn sources(&self) -> Vec<(&'static str, Provider)> {
        let mut sources: Vec<(&'static str, Provider)> = vec![
            ("the environment", Box::new(EnvCredentialProvider::new())),
            ("the profile of the shared files", Box::new(ProfileCredentialProvider::new())),
            ("single sign-on", Box::new(SSOCredentialProvider::new())),
            ("web identity", Box::new(self.web_identity())),
            ("the container's credentials endpoint", Box::new(ECSCredentialProvider::new())),
        ];
        let is_disabled = self.context.env_var("AWS_EC2_METADATA_DISABLED");
        if !is_disabled.is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            sources.push(("the instance metadata service", Box::new(IMDSv2CredentialProvider::new())));
        }
        sources
    }

    fn web_identity(&self) -> AssumeRoleWithWebIdentityCredentialProvider {
        let variable = |name| self.context.env_var(name);
        let region = variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION"));
        let mut source = AssumeRoleWithWebIdentityCredentialProvider::new()
            .with_region(region.unwrap_or_else(|| self.region.clone()));
        // As in AWS's SDKs today, the regional endpoint is the default.
        if variable("AWS_STS_REGIONAL_ENDPOINTS").is_none() {
            source = source.with_regional_sts_endpoint();
        }
        if variable("AWS_ROLE_SESSION_NAME").is_none() {
            source = source.with_role_session_name("hapax".to_owned());
        }
        source
    }
}

impl State {
    fn recent_failure(&self) -> Option<&str> {
        let (why, at) = self.failure.as_ref()?;
        (at.elapsed() < RETRY_AFTER).then_some(why)
    }
}

impl From<&Credential> for Credentials {
    fn from(found: &Credential) -> Self {
        let credentials = Self::new(&found.access_key_id, &found.secret_access_key);
        match &found.session_token {
            Some(token) => credentials.with_session_token(token),
            None => credentials,
        }
    }
}

/// The messages of a source's error and its causes. Causes from parsers are left out: they may quote what they parsed.
fn message(error: &reqsign_core::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(found) = cause {
        if let Some(found) = found.downcast_ref::<reqsign_core::Error>() {
            text = format!("{text}: {found}");
        }
        cause = found.source();
    }
    text
}

#[cfg(test)]
mod tests;
