//! [`RedisFacts`]: finished records on Redis, in front of another store. It may lose all of them at any time.
//!
//! A fact is one string: version (1), the fingerprint's algorithm, its digest (32 bytes), then the outcome as
//! `hapax_core::codec` writes it. An empty string stands for a record that is withheld.

use std::sync::Arc;
use std::time::Duration;

use hapax_core::{BoxFuture, Fact, FactStore, Fingerprint, Nonce, RecordId, StoreError, codec};
use redis::Cmd;

use crate::config::Options;
use crate::error::{Effect, OpenError};
use crate::layout::span_ms;
use crate::link::{Call, What};
use crate::way::Way;

/// How long one call about a fact may take unless told otherwise: it spares a call to the store, which is not far away.
pub const FACTS_TIMEOUT_DEFAULT: Duration = Duration::from_millis(100);

/// How long nobody can bring a record back that was withheld. Whoever read it before it was deleted and has been held up
/// ever since comes too late after that: a day, since deleting is rare.
const WITHHELD: Duration = Duration::from_secs(24 * 60 * 60);

const VERSION_BYTE: u8 = 1;
const DIGEST_BYTES: usize = 32;

/// Outcomes are sealed with the attempt that made them. Here it does not matter which: there is only ever one.
const ANY_ATTEMPT: Nonce = Nonce::from_bytes([0; 16]);

/// Knows what is finished, on a Redis server or a cluster of them.
#[derive(Debug)]
pub struct RedisFacts {
    way: Arc<Way>,
}

impl RedisFacts {
    /// Uses the server that a URL of [`Options`] names. It must have a `prefix`, which stands for the store behind: two
    /// stores under one prefix would be given each other's answers. A call may take 100 milliseconds unless it says
    /// otherwise.
    ///
    /// A server that is not there, drops keys or loses all of them is no error: what it does not know, the store does. It
    /// must be called in a Tokio runtime, in which it leaves a task that looks at the server from time to time.
    ///
    /// # Errors
    /// [`Invalid`](hapax_core::StoreErrorKind::Invalid) when the URL is wrong.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::connect_with(Self::options(url)?).await
    }

    /// What such a URL says.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn options(url: &str) -> Result<Options, StoreError> {
        let options =
            Options::from_url_over(url, &|options| options.prefix("").timeout(FACTS_TIMEOUT_DEFAULT))?;
        match options.key_prefix() {
            "" => {
                let why = "it has no prefix: name the store behind it with ?prefix=NAME:, each store with a name of its own";
                Err(OpenError::Url { why: why.to_owned() }.into())
            }
            // Apart from the records of a store that has the same prefix.
            prefix => {
                let prefix = format!("{prefix}fact:");
                Ok(options.prefix(prefix))
            }
        }
    }

    async fn connect_with(options: Options) -> Result<Self, StoreError> {
        let way = Way::new(options.danger_accept_eviction().danger_accept_amnesia())?;
        // Later calls connect too; whoever wants to know asks for the health.
        let _ = way.open().await;
        tokio::spawn(Way::keep(Arc::downgrade(&way)));
        Ok(Self { way })
    }

    async fn find(&self, id: &RecordId) -> Result<Option<Fact>, StoreError> {
        let call = Call {
            op: "find",
            deadline: self.way.deadline(),
            effect: Effect::Read,
            key: &self.way.key(id),
            what: What::Script(|scripts| &scripts.get, &[]),
        };
        let (value, expiry, now): (Option<Vec<u8>>, i64, u64) = self.way.call(call).await?;
        let remaining = u64::try_from(expiry).unwrap_or_default().saturating_sub(now);
        Ok(value.and_then(|value| decoded(id, &value, Duration::from_millis(remaining))))
    }

    async fn keep(&self, id: &RecordId, fact: &Fact) -> Result<(), StoreError> {
        let remaining_ms = span_ms(fact.remaining);
        if remaining_ms == 0 || fact.recorded.len() > self.way.options.outcome_bytes_max {
            return Ok(());
        }
        let key = self.way.key(id);
        let mut set = redis::cmd("SET");
        set.arg(&key).arg(encoded(id, fact)).arg("NX").arg("PX").arg(remaining_ms);
        self.write("keep", &key, &set).await
    }

    async fn withhold(&self, id: &RecordId) -> Result<(), StoreError> {
        let key = self.way.key(id);
        let mut set = redis::cmd("SET");
        set.arg(&key).arg("").arg("PX").arg(span_ms(WITHHELD));
        self.write("withhold", &key, &set).await
    }

    async fn write(&self, op: &'static str, key: &str, command: &Cmd) -> Result<(), StoreError> {
        let deadline = self.way.deadline();
        let call = Call { op, deadline, effect: Effect::Write, key, what: What::Command(command) };
        let owner = self.way.owner(key, op, deadline).await?;
        self.way.answer(&call, owner).await.map(drop)
    }
}

fn encoded(id: &RecordId, fact: &Fact) -> Vec<u8> {
    let mut value = vec![VERSION_BYTE, fact.fingerprint.algorithm()];
    value.extend_from_slice(fact.fingerprint.digest());
    value.extend_from_slice(&codec::encode_outcome(id, ANY_ATTEMPT, &fact.recorded));
    value
}

/// What cannot be read is not known.
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
        Box::pin(async move { self.way.look().await.map(drop) })
    }
}
