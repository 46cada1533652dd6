//! Writes that wait for replicas, each on a connection that nobody else uses meanwhile.
//!
//! `WAIT` counts the writes of its own connection only, and holds up everything behind it there. So these writes do not
//! go over the shared connection.

use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Value};
use tokio::sync::Semaphore;

use crate::error::{Effect, Refusal, ends_connection};
use crate::link::{Failed, Link, Right, send};

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
        op: &'static str,
        command: &Cmd,
        right: Right,
    ) -> Result<Value, Failed> {
        let _place = self.room.acquire().await;
        let kept = self.idle.lock().pop();
        let mut connection = match kept {
            Some(connection) => connection,
            None => link.connection().await.map_err(|error| link.failed(error, op, Effect::Read))?,
        };
        // The server ends the waiting a little before the caller would.
        let wait_ms = u64::try_from(link.options.timeout.as_millis() / 2).unwrap_or(u64::MAX).max(1);
        let mut wait = redis::cmd("WAIT");
        wait.arg(self.wanted).arg(wait_ms);
        let mut behind = connection.clone();
        // Both are on their way before either is answered, in this order.
        let (answer, copied) = futures_util::future::join(
            send(&mut connection, command, right),
            behind.send_packed_command(&wait),
        )
        .await;
        let copied: Result<u32, _> = copied.and_then(|copied| Ok(redis::from_redis_value(copied)?));
        if answer.as_ref().is_err_and(ends_connection) || copied.is_err() {
            // The others are as old and lead to the same server.
            self.idle.lock().clear();
        } else {
            self.idle.lock().push(connection);
        }
        let answer = answer.map_err(|error| link.failed(error, op, Effect::Write))?;
        match copied {
            Ok(copied) if copied >= self.wanted => Ok(answer),
            _ if is_refusal(&answer) => Ok(answer),
            _ => Err(Failed::Other(Refusal::TooFewReplicas.error(op, Effect::Write))),
        }
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
