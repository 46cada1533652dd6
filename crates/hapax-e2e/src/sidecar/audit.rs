//! Every key once more, and every uncertain one settled by what the service says it did.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result, ensure};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::caller::{Caller, Said};
use super::ledger::{Entry, Ledger};
use super::load::Loaded;
use super::process::TOKEN;
use super::upstream::Upstream;
use super::{Plan, Report};
use crate::http_rounds::client::Client;

/// Auditors at a time.
const AUDITORS: usize = 16;

/// What the auditors share.
struct Shared {
    plan: Plan,
    loaded: Loaded,
    ledger: Arc<Ledger>,
    next: AtomicU64,
    report: Mutex<Report>,
}

/// Asks for every key below `report.keys`.
pub(super) async fn run(plan: &Plan, loaded: Loaded, upstream: &Upstream, report: &mut Report) -> Result<()> {
    let keys = report.keys;
    let shared = Arc::new(Shared {
        plan: plan.clone(),
        loaded,
        ledger: upstream.ledger.clone(),
        next: AtomicU64::new(0),
        report: Mutex::new(std::mem::take(report)),
    });
    let mut auditors = JoinSet::new();
    for _ in 0..AUDITORS {
        let auditor = Auditor::new(shared.clone()).await?;
        auditors.spawn(auditor.audit(keys));
    }
    while let Some(ended) = auditors.join_next().await {
        ended??;
    }
    let open = Operator::to(shared.loaded.sidecar.admin).await?.open().await?;
    *report = std::mem::take(&mut *shared.report.lock());
    report.stuck.extend(open.into_iter().map(|(id, state)| format!("record {id} is still {state}")));
    Ok(())
}

struct Auditor {
    shared: Arc<Shared>,
    caller: Caller,
    operator: Operator,
}

impl Auditor {
    async fn new(shared: Arc<Shared>) -> Result<Self> {
        let caller = Caller::new(shared.loaded.address.subscribe());
        let operator = Operator::to(shared.loaded.sidecar.admin).await?;
        Ok(Self { shared, caller, operator })
    }

    async fn audit(mut self, keys: u64) -> Result<()> {
        loop {
            let key = self.shared.next.fetch_add(1, Ordering::Relaxed);
            if key >= keys {
                return Ok(());
            }
            let Some(said) = self.last_answer(key).await else {
                self.shared
                    .report
                    .lock()
                    .stuck
                    .push(format!("key {key} is in progress, and nobody is at work"));
                continue;
            };
            let entry = self.shared.ledger.entry(key);
            let is_answered = self.shared.loaded.answered.contains(&key);
            let fault = match judge(&entry, is_answered, &said) {
                Err(fault) => Some(fault),
                Ok(Found::Replayed) => None,
                Ok(Found::Uncertain(id)) => self.settle(key, &entry, &id).await?,
            };
            if let Some(fault) = fault {
                self.shared.report.lock().lost.push(format!("key {key}: {fault}"));
            }
        }
    }

    /// Asks until it is told something else than to come again. None when it never is.
    async fn last_answer(&mut self, key: u64) -> Option<Said> {
        let until = Instant::now() + self.shared.plan.patience;
        while Instant::now() < until {
            match self.caller.attempt(key).await {
                Said::Again => {}
                // Longer than the lease: whoever is told so twice is told so for ever, unless somebody is at work.
                Said::InProgress(wait) => sleep(wait).await,
                said => return Some(said),
            }
        }
        None
    }

    /// Settles an uncertain key and looks at what its retries are told then. What is wrong, if something is.
    async fn settle(&mut self, key: u64, entry: &Entry, id: &str) -> Result<Option<String>> {
        let has_happened = entry.effects > 0;
        if let Err(fault) = self.operator.settle(id, has_happened).await {
            return Ok(Some(format!("cannot be settled: {fault:#}")));
        }
        let (first, second) = (self.last_answer(key).await, self.last_answer(key).await);
        let after = self.shared.ledger.entry(key);
        let mut report = self.shared.report.lock();
        report.uncertain += 1;
        *(if has_happened { &mut report.applied } else { &mut report.not_applied }) += 1;
        let is_right = match (has_happened, first, second) {
            (true, Some(Said::Unavailable), Some(Said::Unavailable)) => after.effects == entry.effects,
            (false, Some(first), Some(second)) => after.answer.is_some_and(|answer| {
                let told = |is_replay| Said::Answer { answer: answer.clone(), is_replay };
                first == told(false) && second == told(true)
            }),
            _ => false,
        };
        Ok((!is_right).then(|| format!("settled, applied: {has_happened}, and its retries do not behave")))
    }
}

/// What the audit found of a key that is as it should be.
#[derive(PartialEq, Eq, Debug)]
enum Found {
    Replayed,
    /// With the record's id.
    Uncertain(String),
}

/// Whether a key's answer agrees with the service's account, and with what callers were told before.
fn judge(entry: &Entry, is_answered: bool, said: &Said) -> Result<Found, String> {
    match (said, &entry.answer) {
        (Said::Answer { answer, is_replay: true }, Some(given)) if answer == given => Ok(Found::Replayed),
        (Said::Uncertain(Some(id)), _) if !is_answered => Ok(Found::Uncertain(id.clone())),
        (said, given) => {
            Err(format!("{said:?}, where the service answered {given:?}; heard before: {is_answered}"))
        }
    }
}

/// A user of the admin API.
struct Operator {
    address: SocketAddr,
    connection: Client,
}

impl Operator {
    async fn to(address: SocketAddr) -> Result<Self> {
        Ok(Self { address, connection: Client::open(address).await? })
    }

    /// Decides an uncertain record.
    async fn settle(&mut self, id: &str, has_happened: bool) -> Result<()> {
        let path = format!("/api/v1/records/{id}");
        let found = self.ask("GET", &path, "").await?;
        let record = &found["record"];
        ensure!(record["state"] == "uncertain", "the record is {}", record["state"]);
        let verdict = if has_happened { "applied" } else { "not_applied" };
        let change =
            json!({ "version": record["version"], "verdict": verdict, "reason": "the service says so" });
        self.ask("POST", &format!("{path}/settle"), &change.to_string()).await?;
        Ok(())
    }

    /// Records that are in progress or uncertain: id and state of a page of them.
    async fn open(&mut self) -> Result<Vec<(String, String)>> {
        let page = self.ask("GET", "/api/v1/records?state=in_progress,uncertain", "").await?;
        let records = page["records"].as_array().context("a page has records")?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok(records.iter().map(|record| (text(&record["id"]), text(&record["state"]))).collect())
    }

    async fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<Value> {
        let (address, length) = (self.address, body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        let told = self.connection.ask(request.as_bytes()).await?;
        ensure!(told.status == 200, "{} {}", told.status, String::from_utf8_lossy(&told.body));
        Ok(serde_json::from_slice(&told.body)?)
    }
}

#[cfg(test)]
mod tests;
