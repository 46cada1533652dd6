//! What a peer does with duplicates, clients that hang up, a slow handler and SIGKILL: executions and answers.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures_util::future::join_all;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use super::catalogue::Peer;
use super::server::{Host, Run, Tools};
use crate::rig::http::{HttpConnection, HttpReply, request};

/// What is tried, in the order of the table.
pub(super) const STEPS: [&str; 7] = [
    "50 duplicates at once",
    "500 duplicates at once",
    "client gone after sending",
    "client gone in mid-handler",
    "same key, other body",
    "handler slower than the claim",
    "killed in mid-handler, restarted",
];

/// How long a claim is valid without renewal: short, so that it can be waited out.
const LOCK: Duration = Duration::from_secs(1);
/// How long the handler sleeps while something happens to its client or its process.
const HANDLER: Duration = Duration::from_millis(600);
/// Longer than any handler of the probe takes.
const ANSWER_MAX: Duration = Duration::from_secs(15);
/// How long a retry is repeated while the answer is that the operation is in progress.
const RETRY_MAX: Duration = Duration::from_secs(5);
/// The pause between two retries, and between two looks at the count.
const PAUSE: Duration = Duration::from_millis(100);

/// What happened in one step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Cell {
    /// How often the handler ran.
    pub(super) executions: u64,
    /// What the callers or the retry were answered.
    pub(super) answer: String,
    /// Whether the operation ran once and that answer says so, or says truthfully that its outcome is unknown.
    pub(super) is_right: bool,
}

/// Runs all steps on a peer.
///
/// # Errors
/// When it does not start or stops serving.
pub(super) fn probe(tools: &Tools, peer: &'static Peer) -> Result<Vec<Cell>> {
    let host = Host::open(tools, peer, LOCK)?;
    let run = host.start()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut cells = runtime.block_on(async {
        let subject = Subject::of(&run);
        anyhow::Ok(vec![
            subject.duplicates(50).await?,
            subject.duplicates(500).await?,
            subject.hang_up("gone-sent", Moment::Sent).await?,
            subject.hang_up("gone-running", Moment::Running).await?,
            subject.other_body().await?,
            subject.slow_handler().await?,
        ])
    })?;
    cells.push(runtime.block_on(killed(&host, run))?);
    Ok(cells)
}

/// When a client hangs up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    Sent,
    Running,
}

struct Subject {
    address: SocketAddr,
    counts: SocketAddr,
    path: &'static str,
}

impl Subject {
    fn of(run: &Run) -> Self {
        Self { address: run.address, counts: run.counts, path: run.path }
    }

    async fn duplicates(&self, count: usize) -> Result<Cell> {
        let before = self.executions().await?;
        let request = self.request(&format!("duplicates-{count}"), HANDLER, "book");
        let replies = join_all((0..count).map(|_| self.exchange(&request))).await;
        let mut answers = BTreeMap::<String, usize>::new();
        for reply in replies {
            *answers.entry(describe(reply.as_ref().ok())).or_default() += 1;
        }
        let executions = self.executions().await? - before;
        let answer = answers.iter().map(|(answer, count)| format!("{count} × {answer}"));
        let answer = answer.collect::<Vec<_>>().join(", ");
        Ok(Cell { executions, answer, is_right: executions == 1 })
    }

    async fn hang_up(&self, key: &str, moment: Moment) -> Result<Cell> {
        let before = self.executions().await?;
        let request = self.request(key, HANDLER, "book");
        let mut client = HttpConnection::open(self.address).await?;
        client.send(&request).await?;
        if moment == Moment::Running {
            self.until_executed(before + 1).await?;
        }
        drop(client);
        // Whatever still runs has ended before the retry.
        sleep(HANDLER * 2).await;
        let reply = self.retry(&request).await;
        let executions = self.executions().await? - before;
        let status = reply.as_ref().map(|reply| reply.status);
        Ok(Cell {
            executions,
            answer: describe(reply.as_ref()),
            is_right: executions == 1 && status == Some(201),
        })
    }

    async fn other_body(&self) -> Result<Cell> {
        let before = self.executions().await?;
        self.exchange(&self.request("other-body", Duration::ZERO, "book")).await?;
        let reply = self.exchange(&self.request("other-body", Duration::ZERO, "pen")).await.ok();
        let executions = self.executions().await? - before;
        let is_refused = reply.as_ref().is_some_and(|reply| (400..500).contains(&reply.status));
        Ok(Cell { executions, answer: describe(reply.as_ref()), is_right: executions == 1 && is_refused })
    }

    /// The duplicate comes when a claim that was not renewed has lapsed and the handler still runs.
    async fn slow_handler(&self) -> Result<Cell> {
        let before = self.executions().await?;
        let request = self.request("slow", LOCK * 3, "book");
        let duplicate = async {
            sleep(LOCK * 2).await;
            self.exchange(&request).await
        };
        let (_, reply) = tokio::join!(self.exchange(&request), duplicate);
        let executions = self.executions().await? - before;
        Ok(Cell { executions, answer: describe(reply.ok().as_ref()), is_right: executions == 1 })
    }

    fn request(&self, key: &str, handler: Duration, item: &str) -> Vec<u8> {
        let fields =
            format!("Host: probe\r\nContent-Type: application/json\r\nIdempotency-Key: \"probe-{key}\"\r\n");
        let body = format!(r#"{{"item":"{item}","amount":2,"sleep_ms":{}}}"#, handler.as_millis());
        request("POST", self.path, &fields, &body)
    }

    async fn exchange(&self, request: &[u8]) -> Result<HttpReply> {
        let exchange = async { HttpConnection::open(self.address).await?.exchange(request).await };
        timeout(ANSWER_MAX, exchange).await.context("no answer in time")?
    }

    /// Repeats the request while it is refused as in progress or the server is not reached. The last answer.
    async fn retry(&self, request: &[u8]) -> Option<HttpReply> {
        let deadline = Instant::now() + RETRY_MAX;
        loop {
            let reply = self.exchange(request).await.ok();
            if reply.as_ref().is_some_and(is_final) || Instant::now() > deadline {
                return reply;
            }
            sleep(PAUSE).await;
        }
    }

    async fn executions(&self) -> Result<u64> {
        let mut connection = HttpConnection::open(self.counts).await?;
        let reply = connection.exchange(&request("GET", "/executions", "Host: probe\r\n", "")).await?;
        Ok(std::str::from_utf8(&reply.body)?.parse()?)
    }

    async fn until_executed(&self, count: u64) -> Result<()> {
        let deadline = Instant::now() + ANSWER_MAX;
        while self.executions().await? < count {
            ensure!(Instant::now() < deadline, "the handler does not run");
            sleep(PAUSE / 10).await;
        }
        Ok(())
    }
}

async fn killed(host: &Host<'_>, run: Run) -> Result<Cell> {
    let first = Subject::of(&run);
    let before = first.executions().await?;
    let request = first.request("killed", HANDLER, "book");
    let mut client = HttpConnection::open(first.address).await?;
    client.send(&request).await?;
    first.until_executed(before + 1).await?;
    let is_proxy = run.is_proxy();
    drop(run);
    let started = host.start()?;
    let second = Subject::of(&started);
    let reply = second.retry(&request).await;
    let after = second.executions().await?;
    // The count of a service starts again with its process, after one execution.
    let executions = if is_proxy { after - before } else { 1 + after };
    let is_told =
        reply.as_ref().is_some_and(|reply| reply.status == 201 || problem(reply) == Some("uncertain".into()));
    Ok(Cell { executions, answer: describe(reply.as_ref()), is_right: executions == 1 && is_told })
}

/// Whether a retry would not be answered otherwise soon.
fn is_final(reply: &HttpReply) -> bool {
    match reply.status {
        409 => problem(reply) == Some("uncertain".into()),
        status => status < 500,
    }
}

/// The status, and the code of a problem document.
fn describe(reply: Option<&HttpReply>) -> String {
    let Some(reply) = reply else { return "no answer".into() };
    problem(reply).map_or_else(|| reply.status.to_string(), |code| format!("{} {code}", reply.status))
}

/// The last part of a problem document's type.
fn problem(reply: &HttpReply) -> Option<String> {
    let document: Value = serde_json::from_slice(&reply.body).ok()?;
    Some(document["type"].as_str()?.rsplit('/').next()?.to_owned())
}

#[cfg(test)]
mod tests;
