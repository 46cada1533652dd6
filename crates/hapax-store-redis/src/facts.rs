//! [`RedisFacts`]: finished records on Redis, in front of another store. The server may lose all of them at any time.
//!
//! A fact is one string: version (1), the fingerprint's algorithm, its digest (32 bytes), then the outcome as
//! `hapax_core::codec` writes it. An empty string marks a record that is withheld.

use std::sync::Arc;
use std::time::Duration;

use hapax_core::{BoxFuture, Fact, FactStore, Fingerprint, Nonce, RecordId, StoreError, codec};
use redis::Cmd;

use crate::config::Options;
use crate::connection::{Call, CallBody};
use crate::error::{Effect, OpenError};
use crate::layout::span_ms;
use crate::routing::Router;

/// The default limit of one call about a fact: it saves a call to the store, which is not far away.
pub const FACTS_TIMEOUT_DEFAULT: Duration = Duration::from_millis(100);

/// How long a withheld record cannot be put back. A caller that read it before it was deleted and is delayed for longer
/// than this could put it back: a day, since deleting is rare.
const WITHHELD: Duration = Duration::from_secs(24 * 60 * 60);

const VERSION_BYTE: u8 = 1;
const DIGEST_BYTES: usize = 32;

/// Outcomes are sealed with their attempt. A fact has only one outcome, so any attempt number works.
const ANY_ATTEMPT: Nonce = Nonce::from_bytes([0; 16]);

/// A cache of finished records on a Redis server or cluster.
#[derive(Debug)]
pub struct RedisFacts {
    router: Arc<Router>,
}

impl RedisFacts {
    /// Connects to the server that a URL of [`Options`] names. It must have a `prefix`, which identifies the store behind: two
    /// stores under one prefix would serve each other's outcomes. The default limit of a call is 100 milliseconds.
    ///
    /// A server that is down, evicts keys or loses all of them is no error: a miss goes to the store. It must be called in a
    /// Tokio runtime, on which it spawns a task that checks the server periodically.
    ///
    /// # Errors
    /// [`Invalid`](hapax_core::StoreErrorKind::Invalid) when the URL is wrong.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::connect_with(Self::options(url)?).await
    }

    /// Parses such a URL.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn options(url: &str) -> Result<Options, StoreError> {
        let options =
            Options::from_url_over(url, &|options| options.prefix("").timeout(FACTS_TIMEOUT_DEFAULT))?;
        match options.key_prefix() {
            "" => {
                let why = "it has no prefix: name the store behind it with ?prefix=NAME:, a different name for each store";
                Err(OpenError::Url { why: why.to_owned() }.into())
            }
            // Keeps facts apart from the records of a store with the same prefix.
            prefix => {
                let prefix = format!("{prefix}fact:");
                Ok(options.prefix(prefix))
            }
        }
    }

    async fn connect_with(options: Options) -> Result<Self, StoreError> {
        let router = Router::new(options.danger_accept_eviction().danger_accept_amnesia())?;
        // Later calls connect too; `health` reports the state.
        let _ = router.open().await;
        tokio::spawn(Router::maintain(Arc::downgrade(&router)));
        Ok(Self { router })
    }

    async fn find(&self, id: &RecordId) -> Result<Option<Fact>, StoreError> {
        let call = Call {
            op: "find",
            deadline: self.router.deadline(),
            effect: Effect::Read,
            key: &self.router.key(id),
            body: CallBody::Script(|scripts| &scripts.get, &[]),
        };
        let (value, expiry, now): (Option<Vec<u8>>, i64, u64) = self.router.call(call).await?;
        let remaining = u64::try_from(expiry).unwrap_or_default().saturating_sub(now);
        Ok(value.and_then(|value| decoded(id, &value, Duration::from_millis(remaining))))
    }

    async fn keep(&self, id: &RecordId, fact: &Fact) -> Result<(), StoreError> {
        let remaining_ms = span_ms(fact.remaining);
        if remaining_ms == 0 || fact.recorded.len() > self.router.options.outcome_bytes_max {
            return Ok(());
        }
        let key = self.router.key(id);
        let mut set = redis::cmd("SET");
        set.arg(&key).arg(encoded(id, fact)).arg("NX").arg("PX").arg(remaining_ms);
        self.write("keep", &key, &set).await
    }

    async fn withhold(&self, id: &RecordId) -> Result<(), StoreError> {
        let key = self.router.key(id);
        let mut set = redis::cmd("SET");
        set.arg(&key).arg("").arg("PX").arg(span_ms(WITHHELD));
        self.write("withhold", &key, &set).await
    }

    async fn write(&self, op: &'static str, key: &str, command: &Cmd) -> Result<(), StoreError> {
        let deadline = self.router.deadline();
        let call = Call { op, deadline, effect: Effect::Write, key, body: CallBody::Command(command) };
        let owner = self.router.owner(key, op, deadline).await?;
        self.router.answer(&call, owner).await.map(drop)
    }
}

fn encoded(id: &RecordId, fact: &Fact) -> Vec<u8> {
    let mut value = vec![VERSION_BYTE, fact.fingerprint.algorithm()];
    value.extend_from_slice(fact.fingerprint.digest());
    value.extend_from_slice(&codec::encode_outcome(id, ANY_ATTEMPT, &fact.recorded));
    value
}

/// An unreadable value is a miss.
fn decoded(id: &RecordId, value: &[u8], remaining: Duration) -> Option<Fact> {
    let [VERSION_BYTE, algorithm, rest @ ..] = value else { return None };
    let (digest, outcome) = rest.split_first_chunk::<DIGEST_BYTES>()?;
    let recorded = codec::decode_outcome(id, ANY_ATTEMPT, outcome).ok()?;
    Some(Fact::new(Fingerprint::from_parts(*algorithm, *digest), recorded, remaining))
}

impl FactStore for RedisFacts {
    fn find<'a>(&'a self, id: &'a RecordId) -> BoxFuture<'a, Result<Option<Fact>, StoreError>> {
        Box::pin(self.find(id))
    }

    fn keep<'a>(&'a self, id: &'a RecordId, fact: &'a Fact) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.keep(id, fact))
    }

    fn withhold<'a>(&'a self, id: &'a RecordId) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.withhold(id))
    }

    fn health(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.router.probe().await.map(drop) })
    }
}
