//! Writes that wait for replicas, each on an exclusive connection.
//!
//! `WAIT` counts only the writes of its own connection and blocks everything behind it there. So these writes do not use the
//! shared connection.

use std::sync::Arc;

use futures_util::future::join;
use hapax_core::StoreError;
use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Value};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout_at;

use crate::connection::{Call, CallError, OpenConnection, ServerConnection, SlotAccess, send};
use crate::error::{CallFailure, Effect, ends_connection};

/// How many writes may wait at the same time; further ones queue for a connection.
const CONNECTIONS_MAX: usize = 32;

/// A pool of connections for writes that wait.
#[derive(Debug)]
pub(crate) struct Replicas {
    wanted: u32,
    idle: Mutex<Vec<MultiplexedConnection>>,
    room: Semaphore,
}

impl Replicas {
    /// Waits for this many replicas; none if the number is zero.
    pub(crate) fn new(wanted: u32) -> Option<Self> {
        (wanted > 0).then(|| Self { wanted, idle: Mutex::default(), room: Semaphore::new(CONNECTIONS_MAX) })
    }

    /// Sends a write and waits for its replicas. If the future is dropped, its connection is closed.
    pub(crate) async fn send(
        &self,
        server: &ServerConnection,
        connected: &Arc<OpenConnection>,
        call: &Call<'_>,
        command: &Cmd,
        access: SlotAccess,
    ) -> Result<Value, CallError> {
        let ready = timeout_at(call.deadline, self.ready(server, connected)).await;
        // Nothing has been sent yet, so a failure here is not applied.
        let ready = ready.unwrap_or_else(|_| Err(CallFailure::TimedOut.error(call.op, Effect::Read)));
        let (mut connection, _permit) = ready.map_err(CallError::Other)?;
        // The server stops waiting before the caller's timeout.
        let wait_ms = u64::try_from(server.options.timeout.as_millis() / 2).unwrap_or(u64::MAX).max(1);
        let mut wait = redis::cmd("WAIT");
        wait.arg(self.wanted).arg(wait_ms);
        let mut behind = connection.clone();
        // Both are pipelined in this order.
        let both = join(send(&mut connection, command, access), behind.send_packed_command(&wait));
        let Ok((answer, copied)) = timeout_at(call.deadline, both).await else {
            server.forget(connected);
            return Err(CallFailure::TimedOut.error(call.op, call.effect).into());
        };
        let copied: Result<u32, _> = copied.and_then(|copied| Ok(redis::from_redis_value(copied)?));
        if answer.as_ref().is_err_and(ends_connection) || copied.is_err() {
            server.forget(connected);
        } else {
            let mut idle = self.idle.lock();
            // Otherwise it may lead to a former primary.
            if server.uses(connected) {
                idle.push(connection);
            }
        }
        let answer = answer.map_err(|error| server.call_error(error, call.op, call.effect))?;
        match copied {
            Ok(copied) if copied >= self.wanted => Ok(answer),
            _ if is_refusal(&answer) => Ok(answer),
            _ => Err(CallError::Other(CallFailure::TooFewReplicas.error(call.op, call.effect))),
        }
    }

    /// An exclusive connection to a probed server, and its pool permit.
    async fn ready(
        &self,
        server: &ServerConnection,
        connected: &OpenConnection,
    ) -> Result<(MultiplexedConnection, SemaphorePermit<'_>), StoreError> {
        let permit = self.room.acquire().await.expect("the semaphore is never closed");
        let kept = self.idle.lock().pop();
        match kept {
            Some(connection) => Ok((connection, permit)),
            None => Ok((server.fresh_at(connected.located.clone()).await?.connection, permit)),
        }
    }

    /// Closes the idle connections: they all lead to the same server.
    pub(crate) fn forget(&self) {
        self.idle.lock().clear();
    }
}

/// Whether a reply says that nothing was written, so that there is nothing to replicate.
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
