//! Writes that wait for replicas, each on a connection that nobody else uses meanwhile.
//!
//! `WAIT` counts the writes of its own connection only, and holds up everything behind it there. So these writes do not
//! go over the shared connection.

use std::sync::Arc;

use futures_util::future::join;
use hapax_core::StoreError;
use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Value};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout_at;

use crate::error::{Effect, Refusal, ends_connection};
use crate::link::{Call, Connected, Failed, Link, Right, send};

/// How many writes wait at the same time; more wait for one of them.
const CONNECTIONS_MAX: usize = 32;

/// Connections for writes that wait.
#[derive(Debug)]
pub(crate) struct Replicas {
    wanted: u32,
    idle: Mutex<Vec<MultiplexedConnection>>,
    room: Semaphore,
}

impl Replicas {
    /// Waits for so many replicas; nothing to wait for when there are none.
    pub(crate) fn new(wanted: u32) -> Option<Self> {
        (wanted > 0).then(|| Self { wanted, idle: Mutex::default(), room: Semaphore::new(CONNECTIONS_MAX) })
    }

    /// Sends a write and waits until enough replicas have it. Dropped on its way, it takes its connection with it.
    pub(crate) async fn send(
        &self,
        link: &Link,
        connected: &Arc<Connected>,
        call: &Call<'_>,
        command: &Cmd,
        right: Right,
    ) -> Result<Value, Failed> {
        let ready = timeout_at(call.deadline, self.ready(link, connected)).await;
        // Nothing has been sent yet, so whatever fails here was not applied.
        let ready = ready.unwrap_or_else(|_| Err(Refusal::TimedOut.error(call.op, Effect::Read)));
        let (mut connection, _place) = ready.map_err(Failed::Other)?;
        // The server ends the waiting a little before the caller would.
        let wait_ms = u64::try_from(link.options.timeout.as_millis() / 2).unwrap_or(u64::MAX).max(1);
        let mut wait = redis::cmd("WAIT");
        wait.arg(self.wanted).arg(wait_ms);
        let mut behind = connection.clone();
        // Both are on their way before either is answered, in this order.
        let both = join(send(&mut connection, command, right), behind.send_packed_command(&wait));
        let Ok((answer, copied)) = timeout_at(call.deadline, both).await else {
            link.forget(connected);
            return Err(Refusal::TimedOut.error(call.op, call.effect).into());
        };
        let copied: Result<u32, _> = copied.and_then(|copied| Ok(redis::from_redis_value(copied)?));
        if answer.as_ref().is_err_and(ends_connection) || copied.is_err() {
            link.forget(connected);
        } else {
            let mut idle = self.idle.lock();
            // Otherwise it may lead to a server that is the primary no more.
            if link.uses(connected) {
                idle.push(connection);
            }
        }
        let answer = answer.map_err(|error| link.failed(error, call.op, call.effect))?;
        match copied {
            Ok(copied) if copied >= self.wanted => Ok(answer),
            _ if is_refusal(&answer) => Ok(answer),
            _ => Err(Failed::Other(Refusal::TooFewReplicas.error(call.op, call.effect))),
        }
    }

    /// A connection that nobody uses, looked over like every other, and the place it takes.
    async fn ready(
        &self,
        link: &Link,
        connected: &Connected,
    ) -> Result<(MultiplexedConnection, SemaphorePermit<'_>), StoreError> {
        let place = self.room.acquire().await.expect("nobody closes it");
        let kept = self.idle.lock().pop();
        match kept {
            Some(connection) => Ok((connection, place)),
            None => Ok((link.fresh_at(connected.located.clone()).await?.connection, place)),
        }
    }

    /// Gives up what is unused: all of it is as old and leads to the same server.
    pub(crate) fn forget(&self) {
        self.idle.lock().clear();
    }
}

/// Whether an answer says that nothing was written, so that there is nothing for a replica to have.
fn is_refusal(answer: &Value) -> bool {
    let word = match answer {
        Value::Array(parts) => parts.first(),
        other => Some(other),
    };
    match word {
        Some(Value::BulkString(word)) => word != b"acquired" && word != b"applied",
        _ => false,
    }
}
