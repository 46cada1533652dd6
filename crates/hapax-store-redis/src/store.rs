//! [`RedisStore`]: checks sizes, calls scripts and parses their replies.

use std::sync::Arc;
use std::time::Duration;

use hapax_core::store::TOMBSTONE_RETENTION;
use hapax_core::{
    BoxFuture, Claim, ClaimRequest, Class, Deleted, Fenced, Health, Lease, Lookup, Nonce, Page, Query,
    Reason, RecordId, Recorded, Settled, Settlement, State, Stats, Store, StoreError, Swept, Timestamp,
    Verdict, codec,
};
use redis::Value;

use crate::config::Options;
use crate::connection::{Call, CallBody, Deadline};
use crate::error::{CallFailure, Effect, is_wrong_type};
use crate::layout::{Stored, reason_number, span_ms, state, state_number};
use crate::notifications::Notifications;
use crate::routing::Router;
use crate::script::{Script, Scripts};
use crate::{claim, list};

/// The limit of a scope's names in bytes; they are stored with every record.
pub const SCOPE_BYTES_MAX: usize = 64 << 10;

/// Keeps records on a Redis server or cluster. See the [crate](crate) for its guarantees.
#[derive(Debug)]
pub struct RedisStore {
    router: Arc<Router>,
    notifications: Notifications,
}

impl RedisStore {
    /// Connects to the server, or to every primary of a cluster, and verifies that it can be a store.
    ///
    /// It must be called in a Tokio runtime, on which it spawns a task that checks the server periodically. The task ends
    /// with the store.
    ///
    /// # Errors
    /// [`Unavailable`](hapax_core::StoreErrorKind::Unavailable) if the server cannot be reached in time or is a replica,
    /// [`Incompatible`](hapax_core::StoreErrorKind::Incompatible) if it is too old, evicts keys, or is a cluster member that was
    /// not named as one, [`Invalid`](hapax_core::StoreErrorKind::Invalid) if the URL is malformed. The source of the latter two
    /// is an [`OpenError`](crate::OpenError), which says what to do.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::options(url)?.connect().await
    }

    /// Parses a URL, for further options.
    ///
    /// # Errors
    /// [`Invalid`](hapax_core::StoreErrorKind::Invalid) if the URL is malformed.
    pub fn options(url: &str) -> Result<Options, StoreError> {
        Options::from_url(url)
    }

    pub(crate) async fn connect_with(options: Options) -> Result<Self, StoreError> {
        let router = Router::new(options)?;
        router.open().await?;
        tokio::spawn(Router::maintain(Arc::downgrade(&router)));
        let notifications = Notifications::new(router.clone());
        Ok(Self { router, notifications })
    }

    /// Calls a script that compares the lease's nonce, its first argument, before it writes.
    async fn fenced(
        &self,
        op: &'static str,
        script: fn(&Scripts) -> &Script,
        lease: &Lease,
        arguments: &[&[u8]],
    ) -> Result<Fenced, StoreError> {
        let call = Call {
            op,
            deadline: self.router.deadline(),
            effect: Effect::Write,
            key: &self.router.key(&lease.id),
            body: CallBody::Script(script, arguments),
        };
        let word: String = self.router.call(call).await?;
        match word.as_str() {
            "applied" => Ok(Fenced::Applied),
            "lost" => Ok(Fenced::Lost),
            _ => Err(unexpected_reply(op, &word)),
        }
    }

    /// Encodes an outcome, unless it is too large.
    fn outcome(
        &self,
        op: &'static str,
        id: &RecordId,
        nonce: Nonce,
        recorded: &Recorded,
    ) -> Result<Vec<u8>, StoreError> {
        if recorded.len() > self.router.options.outcome_bytes_max {
            return Err(CallFailure::OutcomeTooLarge.error(op, Effect::Read));
        }
        Ok(codec::encode_outcome(id, nonce, recorded))
    }
}

/// Reads one record.
pub(crate) async fn get(
    router: &Router,
    op: &'static str,
    id: &RecordId,
    deadline: Deadline,
) -> Result<Lookup, StoreError> {
    let key = router.key(id);
    let body = CallBody::Script(|scripts| &scripts.get, &[]);
    let call = Call { op, deadline, effect: Effect::Read, key: &key, body };
    let (value, expiry, now): (Option<Vec<u8>>, i64, u64) = match router.call(call).await {
        Ok(found) => found,
        Err(error) if is_wrong_type(&error) => {
            return Ok(Lookup::Unreadable { why: "the record's key holds another data type".to_owned() });
        }
        Err(error) => return Err(error),
    };
    let Some(value) = value else { return Ok(Lookup::Absent) };
    let read = Stored::open(&key, &value)
        .ok_or("the value is damaged, belongs to another record, or has an unknown version")
        .and_then(|stored| stored.record(*id, expiry));
    Ok(match read {
        Ok(record) => Lookup::Found { record: Box::new(record), now: Timestamp::from_millis(now) },
        Err(why) => Lookup::Unreadable { why: why.to_owned() },
    })
}

impl Store for RedisStore {
    fn claim<'a>(&'a self, ask: &'a ClaimRequest) -> BoxFuture<'a, Result<Claim, StoreError>> {
        Box::pin(async move {
            let scope = &ask.key.scope;
            if scope.namespace().len() + scope.operation().len() > SCOPE_BYTES_MAX {
                return Err(CallFailure::ScopeTooLarge.error("claim", Effect::Read));
            }
            claim::claim(&self.router, ask).await
        })
    }

    fn renew<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        Box::pin(async move {
            let lease_ms = span_ms(lease.length).to_string();
            self.fenced("renew", |scripts| &scripts.renew, lease, &[nonce(lease), lease_ms.as_bytes()]).await
        })
    }

    fn complete<'a>(
        &'a self,
        lease: &'a Lease,
        done: &'a Recorded,
        retention: Duration,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        Box::pin(async move {
            let outcome = self.outcome("complete", &lease.id, lease.fence.nonce, done)?;
            let (state, retention_ms) = (pinned(done).to_string(), span_ms(retention).to_string());
            let arguments = [nonce(lease), state.as_bytes(), retention_ms.as_bytes(), &outcome];
            self.fenced("complete", |scripts| &scripts.complete, lease, &arguments).await
        })
    }

    fn release<'a>(
        &'a self,
        lease: &'a Lease,
        answered: Option<&'a Recorded>,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        Box::pin(async move {
            let outcome = match answered {
                Some(answered) => self.outcome("release", &lease.id, lease.fence.nonce, answered)?,
                None => Vec::new(),
            };
            let tombstone_ms = span_ms(TOMBSTONE_RETENTION).to_string();
            let arguments = [nonce(lease), tombstone_ms.as_bytes(), &outcome];
            self.fenced("release", |scripts| &scripts.release, lease, &arguments).await
        })
    }

    fn abandon<'a>(&'a self, lease: &'a Lease, reason: Reason) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        Box::pin(async move {
            let reason = reason_number(reason).to_string();
            self.fenced("abandon", |scripts| &scripts.abandon, lease, &[nonce(lease), reason.as_bytes()])
                .await
        })
    }

    fn settle<'a>(
        &'a self,
        id: &'a RecordId,
        settlement: &'a Settlement,
    ) -> BoxFuture<'a, Result<Settled, StoreError>> {
        Box::pin(async move {
            let (state, retention, outcome) = match &settlement.verdict {
                Verdict::Applied { recorded, retention } => {
                    let outcome = self.outcome("settle", id, settlement.nonce, recorded)?;
                    (pinned(recorded), *retention, outcome)
                }
                Verdict::NotApplied => (state_number(State::Released), TOMBSTONE_RETENTION, Vec::new()),
            };
            let (state, retention_ms) = (state.to_string(), span_ms(retention).to_string());
            let arguments: [&[u8]; 5] = [
                settlement.attempt.as_bytes(),
                settlement.nonce.as_bytes(),
                state.as_bytes(),
                retention_ms.as_bytes(),
                &outcome,
            ];
            let call = Call {
                op: "settle",
                deadline: self.router.deadline(),
                effect: Effect::Write,
                key: &self.router.key(id),
                body: CallBody::Script(|scripts| &scripts.settle, &arguments),
            };
            read_settled(&self.router.call::<Vec<Value>>(call).await?)
        })
    }

    fn get<'a>(&'a self, id: &'a RecordId) -> BoxFuture<'a, Result<Lookup, StoreError>> {
        Box::pin(get(&self.router, "get", id, self.router.deadline()))
    }

    fn list<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Page, StoreError>> {
        Box::pin(list::list(&self.router, query))
    }

    fn delete<'a>(&'a self, id: &'a RecordId, nonce: Nonce) -> BoxFuture<'a, Result<Deleted, StoreError>> {
        Box::pin(async move {
            let arguments: [&[u8]; 1] = [nonce.as_bytes()];
            let call = Call {
                op: "delete",
                deadline: self.router.deadline(),
                effect: Effect::Write,
                key: &self.router.key(id),
                body: CallBody::Script(|scripts| &scripts.delete, &arguments),
            };
            let word: String = self.router.call(call).await?;
            match word.as_str() {
                "applied" => Ok(Deleted::Applied),
                "absent" => Ok(Deleted::Absent),
                "changed" => Ok(Deleted::Changed),
                "in_progress" => Ok(Deleted::InProgress),
                _ => Err(unexpected_reply("delete", &word)),
            }
        })
    }

    /// Removes nothing: the server expires every record itself, uncertain ones too.
    fn sweep(&self, _batch_max: usize) -> BoxFuture<'_, Result<Swept, StoreError>> {
        Box::pin(async move { Ok(Swept::default()) })
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats, StoreError>> {
        Box::pin(list::stats(&self.router))
    }

    fn health(&self) -> BoxFuture<'_, Result<Health, StoreError>> {
        Box::pin(async move {
            let server = self.router.probe().await?;
            Ok(Health::new("redis", server.promise, server.warnings))
        })
    }

    fn outcome_bytes_max(&self) -> usize {
        self.router.options.outcome_bytes_max
    }

    fn watch(&self, id: &RecordId) -> Option<BoxFuture<'static, ()>> {
        Some(self.notifications.watch(self.router.key(id)))
    }
}

/// The value that every fenced script compares first.
fn nonce(lease: &Lease) -> &[u8] {
    lease.fence.nonce.as_bytes()
}

/// The state of a record that is pinned with this outcome.
fn pinned(recorded: &Recorded) -> u8 {
    state_number(match recorded.class {
        Class::Success => State::Completed,
        Class::Error => State::Failed,
    })
}

fn read_settled(reply: &[Value]) -> Result<Settled, StoreError> {
    let word = match reply.first() {
        Some(Value::BulkString(word)) => word.as_slice(),
        _ => b"",
    };
    match (word, &reply[1.min(reply.len())..]) {
        (b"applied", []) => Ok(Settled::Applied),
        (b"absent", []) => Ok(Settled::Absent),
        (b"changed", []) => Ok(Settled::Changed),
        (b"not_uncertain", [Value::Int(number)]) => u8::try_from(*number)
            .ok()
            .and_then(state)
            .map(Settled::NotUncertain)
            .ok_or_else(|| CallFailure::Unreadable.error("settle", Effect::Write)),
        (word, _) => Err(unexpected_reply("settle", &String::from_utf8_lossy(word))),
    }
}

fn unexpected_reply(op: &'static str, word: &str) -> StoreError {
    let failure = if word == "unreadable" { CallFailure::Unreadable } else { CallFailure::Reply };
    failure.error(op, Effect::Write)
}
