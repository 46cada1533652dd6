//! [`Caller`]: a client that sends the same request with the same key until it has a final answer.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::Value;
use tokio::time::sleep;

use super::http::{HttpConnection, HttpReply, keyed_post};
use super::service::{NOW, OrderAnswer, WAIT};
use super::sidecar::SidecarAddress;

/// Back-off after a broken connection.
const BACK_OFF: Duration = Duration::from_millis(10);

/// The field that marks an answer which the store does not hold yet.
const RECORDED: &str = "idempotency-recorded";

/// The result of one attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum AttemptResult {
    /// The service's answer, or its replay.
    Answered { answer: OrderAnswer, source: AnswerSource },
    /// The outcome is unknown. The record's id, where the refusal names it.
    Uncertain(Option<String>),
    /// The operation took effect, and its answer cannot be given.
    Unavailable,
    /// Another attempt runs: retry after this long.
    InProgress(Duration),
    /// No response, or a 5xx: retry.
    Retry,
    /// A response that no attempt should get here.
    Unexpected(String),
}

/// What an answer says about its recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AnswerSource {
    /// The answer of this execution, and it is recorded.
    Executed,
    /// The answer of this execution. It is not promised that retries get it.
    Unrecorded,
    /// A record.
    Replay,
}

/// A client of several sidecars that are one service to it. Every new connection goes to the next of them.
pub(crate) struct Caller {
    sidecars: Vec<SidecarAddress>,
    turn: usize,
    connection: Option<HttpConnection>,
}

impl Caller {
    /// A client that connects to the sidecar at `turn` first.
    pub(crate) fn new(sidecars: Vec<SidecarAddress>, turn: usize) -> Self {
        Self { sidecars, turn, connection: None }
    }

    /// Sends the request of a key once.
    pub(crate) async fn attempt(&mut self, key: u64) -> AttemptResult {
        let result = match self.exchange(&request(key)).await {
            Ok(reply) => attempt_result(&reply),
            Err(_broken) => {
                sleep(BACK_OFF).await;
                AttemptResult::Retry
            }
        };
        if result == AttemptResult::Retry {
            self.connection = None;
        }
        result
    }

    async fn exchange(&mut self, request: &[u8]) -> Result<HttpReply> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => HttpConnection::open(self.next_address().context("all sidecars are dead")?).await?,
        };
        let reply = connection.exchange(request).await?;
        // A connection whose attempt was dropped is dropped with it: its response may still come.
        self.connection = Some(connection);
        Ok(reply)
    }

    /// The next sidecar that is alive.
    fn next_address(&mut self) -> Option<SocketAddr> {
        let count = self.sidecars.len();
        let turns = self.turn..self.turn + count;
        self.turn = (self.turn + 1) % count;
        turns.map(|turn| *self.sidecars[turn % count].borrow()).find_map(|address| address)
    }
}

/// A key belongs to one endpoint, so all its attempts go to the same path.
fn request(key: u64) -> Vec<u8> {
    let path = if key.is_multiple_of(2) { WAIT } else { NOW };
    keyed_post(path, &format!("order-{key}"), &key.to_string())
}

fn attempt_result(reply: &HttpReply) -> AttemptResult {
    if reply.field("content-type") != Some("application/problem+json") {
        return if reply.status >= 500 {
            AttemptResult::Retry
        } else {
            AttemptResult::Answered { answer: reply.into(), source: answer_source(reply) }
        };
    }
    let problem: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    let code = problem["type"].as_str().and_then(|kind| kind.rsplit('/').next()).unwrap_or_default();
    match code {
        "uncertain" => AttemptResult::Uncertain(problem["operation"].as_str().map(str::to_owned)),
        "result-unavailable" => AttemptResult::Unavailable,
        "in-progress" => {
            let seconds = reply.field("retry-after").and_then(|seconds| seconds.parse().ok());
            AttemptResult::InProgress(Duration::from_secs(seconds.unwrap_or(1)))
        }
        _ if reply.status >= 500 => AttemptResult::Retry,
        _ => AttemptResult::Unexpected(format!("{} {code}", reply.status)),
    }
}

fn answer_source(reply: &HttpReply) -> AnswerSource {
    if reply.is_replay {
        AnswerSource::Replay
    } else if reply.field(RECORDED) == Some("false") {
        AnswerSource::Unrecorded
    } else {
        AnswerSource::Executed
    }
}

#[cfg(test)]
mod tests;
