//! A client that retries by the book: the same request with the same key, when it is told to or hears nothing.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::sleep;

use super::ledger::Answer;
use super::upstream::{NOW, WAIT};
use crate::http_rounds::client::{Client, Told};

/// How long a caller waits after a broken connection, as every polite one does: a sidecar that is gone for good is not
/// asked in a busy loop.
const BACK_OFF: Duration = Duration::from_millis(10);

/// The field that marks an answer of which the store knows nothing yet.
const RECORDED: &str = "idempotency-recorded";

/// What one attempt came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Said {
    /// The service's answer, or its replay.
    Answer { answer: Answer, mark: Mark },
    /// Nobody knows whether it happened. The record's id, where it was told.
    Uncertain(Option<String>),
    /// It happened, and its answer cannot be given.
    Unavailable,
    /// Another attempt is at work: come again after so long.
    InProgress(Duration),
    /// Nothing was heard, or a 5xx: come again.
    Again,
    /// What nobody should be told here.
    Other(String),
}

/// What an answer says about itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mark {
    /// The answer of this very run, and it is recorded.
    First,
    /// The answer of this very run. Whether retries will get it is not promised.
    Unrecorded,
    /// What was recorded before.
    Replay,
}

/// Where a sidecar is. Nowhere while it is dead.
pub(crate) type Whereabouts = watch::Receiver<Option<SocketAddr>>;

/// A client of several sidecars that are one to it. Every new connection goes to the next of them.
pub(crate) struct Caller {
    sidecars: Vec<Whereabouts>,
    turn: usize,
    connection: Option<Client>,
}

impl Caller {
    /// A client that goes to the sidecar at `turn` first.
    pub(crate) fn new(sidecars: Vec<Whereabouts>, turn: usize) -> Self {
        Self { sidecars, turn, connection: None }
    }

    /// Sends the request of a key once.
    pub(crate) async fn attempt(&mut self, key: u64) -> Said {
        let said = match self.told(&request(key)).await {
            Ok(told) => said(&told),
            Err(_broken) => {
                sleep(BACK_OFF).await;
                Said::Again
            }
        };
        if said == Said::Again {
            self.connection = None;
        }
        said
    }

    async fn told(&mut self, request: &[u8]) -> Result<Told> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Client::open(self.place().context("all of them are dead")?).await?,
        };
        let told = connection.ask(request).await?;
        // A connection on which an attempt was given up is gone with it: its answer may still come.
        self.connection = Some(connection);
        Ok(told)
    }

    /// The next sidecar that is alive.
    fn place(&mut self) -> Option<SocketAddr> {
        let count = self.sidecars.len();
        let turns = self.turn..self.turn + count;
        self.turn = (self.turn + 1) % count;
        turns.map(|turn| *self.sidecars[turn % count].borrow()).find_map(|place| place)
    }
}

/// A key belongs to one endpoint, so its attempts all go there.
fn request(key: u64) -> Vec<u8> {
    let path = if key.is_multiple_of(2) { WAIT } else { NOW };
    let body = key.to_string();
    format!(
        "POST {path} HTTP/1.1\r\nHost: proof\r\nIdempotency-Key: \"order-{key}\"\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn said(told: &Told) -> Said {
    if told.field("content-type") != Some("application/problem+json") {
        return if told.status >= 500 {
            Said::Again
        } else {
            Said::Answer { answer: told.into(), mark: mark(told) }
        };
    }
    let problem: Value = serde_json::from_slice(&told.body).unwrap_or_default();
    let code = problem["type"].as_str().and_then(|kind| kind.rsplit('/').next()).unwrap_or_default();
    match code {
        "uncertain" => Said::Uncertain(problem["operation"].as_str().map(str::to_owned)),
        "result-unavailable" => Said::Unavailable,
        "in-progress" => {
            let seconds = told.field("retry-after").and_then(|seconds| seconds.parse().ok());
            Said::InProgress(Duration::from_secs(seconds.unwrap_or(1)))
        }
        _ if told.status >= 500 => Said::Again,
        _ => Said::Other(format!("{} {code}", told.status)),
    }
}

fn mark(told: &Told) -> Mark {
    if told.is_replay {
        Mark::Replay
    } else if told.field(RECORDED) == Some("false") {
        Mark::Unrecorded
    } else {
        Mark::First
    }
}

#[cfg(test)]
mod tests;
