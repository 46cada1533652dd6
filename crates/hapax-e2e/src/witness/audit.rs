//! Every key once more, and every uncertain one settled by what the service says it did.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::caller::{Caller, Mark, Said, Whereabouts};
use super::ledger::{Answer, Entry, Ledger};
use super::load::Loaded;
use super::process::TOKEN;
use super::{Fault, Report};
use crate::http_rounds::client::Client;

/// Auditors at a time.
const AUDITORS: usize = 16;
/// How often the admin API is asked when the store does not answer it in time, and how long to wait in between.
const TRIES: u32 = 50;
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// Whom the audit asks, and what it compares with.
pub(crate) struct Audit {
    /// All of them are alive.
    pub(crate) sidecars: Vec<Whereabouts>,
    /// The admin API of one of them.
    pub(crate) admin: SocketAddr,
    pub(crate) ledger: Arc<Ledger>,
    /// A key without an answer for this long is stuck.
    pub(crate) patience: Duration,
}

/// What the auditors share.
struct Shared {
    audit: Audit,
    keys: u64,
    answered: HashMap<u64, Answer>,
    next: AtomicU64,
    /// The records that were settled, and their keys.
    settled: Mutex<HashMap<String, u64>>,
    report: Mutex<Report>,
}

impl Audit {
    /// Asks for every key once more.
    pub(crate) async fn run(self, loaded: Loaded) -> Result<Report> {
        let admin = self.admin;
        let Loaded { report, answered } = loaded;
        let shared = Arc::new(Shared {
            audit: self,
            keys: report.keys,
            answered,
            next: AtomicU64::new(0),
            settled: Mutex::default(),
            report: Mutex::new(report),
        });
        let mut auditors = JoinSet::new();
        for number in 0..AUDITORS {
            auditors.spawn(Auditor::new(shared.clone(), number).await?.audit());
        }
        while let Some(ended) = auditors.join_next().await {
            ended??;
        }
        let open = Operator::to(admin).await?.open().await;
        let mut report = std::mem::take(&mut *shared.report.lock());
        match open {
            Ok(open) => {
                let settled = shared.settled.lock();
                report.stuck.extend(open.into_iter().map(|(id, state)| match settled.get(&id) {
                    Some(key) => format!("record {id} is {state} again; key {key} was settled"),
                    None => format!("record {id} is still {state}, and no key was told so"),
                }));
            }
            Err(fault) => report.stuck.push(format!("nobody can tell what is open: {fault:#}")),
        }
        report.doubles = shared.audit.ledger.doubles();
        Ok(report)
    }
}

struct Auditor {
    shared: Arc<Shared>,
    caller: Caller,
    operator: Operator,
}

impl Auditor {
    async fn new(shared: Arc<Shared>, number: usize) -> Result<Self> {
        let caller = Caller::new(shared.audit.sidecars.clone(), number);
        let operator = Operator::to(shared.audit.admin).await?;
        Ok(Self { shared, caller, operator })
    }

    async fn audit(mut self) -> Result<()> {
        loop {
            let key = self.shared.next.fetch_add(1, Ordering::Relaxed);
            if key >= self.shared.keys || self.shared.report.lock().is_hopeless() {
                return Ok(());
            }
            let mut said = self.last_answer(key).await;
            if let Some(Said::Answer { mark: Mark::Unrecorded, .. }) = said {
                // It ran just now, and the store was slow. What is kept of it is what the next caller hears.
                said = self.last_answer(key).await;
            }
            let fault = match said {
                None => Some(Fault::Stuck("in progress, and nobody is at work".to_owned())),
                Some(said) => {
                    let entry = self.shared.audit.ledger.entry(key);
                    let fault = judge(&entry, self.shared.answered.get(&key), &said).err();
                    let settled = match &said {
                        Said::Uncertain(Some(id)) => self.settle(key, &entry, id).await?,
                        _ => None,
                    };
                    fault.or(settled.map(Fault::Lost))
                }
            };
            fault.into_iter().for_each(|fault| self.shared.report.lock().note(key, fault));
        }
    }

    /// Asks until it is told something else than to come again. None when it never is.
    async fn last_answer(&mut self, key: u64) -> Option<Said> {
        let until = Instant::now() + self.shared.audit.patience;
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
        self.shared.settled.lock().insert(id.to_owned(), key);
        let (first, second) = (self.last_answer(key).await, self.last_answer(key).await);
        let after = self.shared.audit.ledger.entry(key);
        let mut report = self.shared.report.lock();
        report.uncertain += 1;
        *(if has_happened { &mut report.applied } else { &mut report.not_applied }) += 1;
        let is_right = if has_happened {
            after.effects == entry.effects && [&first, &second] == [&Some(Said::Unavailable); 2]
        } else {
            ran_once(&after, first.as_ref(), second.as_ref())
        };
        let wrong = || {
            format!("settled, applied: {has_happened}; then its retries were told {first:?} and {second:?}")
        };
        Ok((!is_right).then(wrong))
    }
}

/// Whether the retries of a key that was settled as not applied ran it and were then given what it answered. The first
/// may be told that its answer is not recorded yet, where the store was slow.
fn ran_once(after: &Entry, first: Option<&Said>, second: Option<&Said>) -> bool {
    after.answers.last().is_some_and(|answer| {
        let told = |mark| Said::Answer { answer: answer.clone(), mark };
        let ran = [told(Mark::First), told(Mark::Unrecorded)];
        first.is_some_and(|first| ran.contains(first)) && second == Some(&told(Mark::Replay))
    })
}

/// Whether a key's answer agrees with the service's account, and with what callers heard before.
fn judge(entry: &Entry, heard: Option<&Answer>, said: &Said) -> Result<(), Fault> {
    let lost = || {
        let given = &entry.answers;
        Fault::Lost(format!("{said:?}, where the service answered {given:?}; heard before: {heard:?}"))
    };
    match said {
        Said::Answer { answer, .. } if !entry.answers.contains(answer) => {
            Err(Fault::Wrong(format!("{said:?}, where the service answered {:?}", entry.answers)))
        }
        Said::Answer { answer, mark: Mark::Replay } if heard.is_none_or(|heard| heard == answer) => Ok(()),
        // Whoever had claimed it gave it back after all its callers had gone.
        Said::Answer { mark: Mark::First, .. } if heard.is_none() && entry.effects == 1 => Ok(()),
        Said::Uncertain(Some(_)) if heard.is_none() => Ok(()),
        _ => Err(lost()),
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

    /// Decides an uncertain record. A settlement whose answer was lost is looked up, not guessed.
    async fn settle(&mut self, id: &str, has_happened: bool) -> Result<()> {
        let path = format!("/api/v1/records/{id}");
        let verdict = if has_happened { "applied" } else { "not_applied" };
        let mut was_sent = false;
        for _ in 0..TRIES {
            let found = self.read(&path).await?;
            let record = &found["record"];
            if record["state"] != "uncertain" {
                ensure!(was_sent, "the record is {}", record["state"]);
                return Ok(());
            }
            was_sent = true;
            let change =
                json!({ "version": record["version"], "verdict": verdict, "reason": "the service says so" });
            if self.ask("POST", &format!("{path}/settle"), &change.to_string()).await?.is_some() {
                return Ok(());
            }
        }
        bail!("the store takes no settlement")
    }

    /// Records that are in progress or uncertain: id and state of a page of them.
    async fn open(&mut self) -> Result<Vec<(String, String)>> {
        let page = self.read("/api/v1/records?state=in_progress,uncertain").await?;
        let records = page["records"].as_array().context("a page has records")?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok(records.iter().map(|record| (text(&record["id"]), text(&record["state"]))).collect())
    }

    /// Reads until the store answers in time.
    async fn read(&mut self, path: &str) -> Result<Value> {
        for _ in 0..TRIES {
            if let Some(found) = self.ask("GET", path, "").await? {
                return Ok(found);
            }
        }
        bail!("the store does not answer")
    }

    /// None where the store could not be asked in time, or the connection had ended.
    async fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<Option<Value>> {
        let (address, length) = (self.address, body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        let Ok(told) = self.connection.ask(request.as_bytes()).await else {
            // A connection that nobody used for a while is closed.
            self.connection = Client::open(self.address).await?;
            return Ok(None);
        };
        if told.status >= 500 {
            sleep(ASK_AGAIN).await;
            return Ok(None);
        }
        ensure!(told.status == 200, "{} {}", told.status, String::from_utf8_lossy(&told.body));
        Ok(Some(serde_json::from_slice(&told.body)?))
    }
}

#[cfg(test)]
mod tests;
