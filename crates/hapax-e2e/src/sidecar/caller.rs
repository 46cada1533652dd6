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

/// What one attempt came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Said {
    /// The service's answer, or its replay.
    Answer { answer: Answer, is_replay: bool },
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

/// Where the sidecar is. Nowhere while it is dead.
pub(super) type Whereabouts = watch::Receiver<Option<SocketAddr>>;

pub(super) struct Caller {
    sidecar: Whereabouts,
    connection: Option<Client>,
}

impl Caller {
    pub(super) fn new(sidecar: Whereabouts) -> Self {
        Self { sidecar, connection: None }
    }

    /// Sends the request of a key once.
    pub(super) async fn attempt(&mut self, key: u64) -> Said {
        match self.told(&request(key)).await {
            Ok(told) => said(&told),
            Err(_broken) => {
                sleep(BACK_OFF).await;
                Said::Again
            }
        }
    }

    async fn told(&mut self, request: &[u8]) -> Result<Told> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let address = *self.sidecar.wait_for(Option::is_some).await?;
                Client::open(address.context("it is somewhere")?).await?
            }
        };
        let told = connection.ask(request).await?;
        // A connection on which an attempt was given up is gone with it: its answer may still come.
        self.connection = Some(connection);
        Ok(told)
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
            Said::Answer { answer: told.into(), is_replay: told.is_replay }
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

#[cfg(test)]
mod tests;
