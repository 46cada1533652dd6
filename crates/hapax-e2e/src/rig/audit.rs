//! Compares what callers were answered with the effect log. For sidecars, [`Audit`] also sends every key once more and
//! settles uncertain records by the log.

use std::collections::HashMap;
use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::LoadReport;
use super::admin::AdminClient;
use super::caller::{AnswerSource, AttemptResult, Caller};
use super::damage::{AuditFault, Damage};
use super::effects::{EffectLog, KeyEffects};
use super::ledger::Ledger;
use super::load::FinishedLoad;
use super::service::{OrderAnswer, OrderService};
use super::sidecar::SidecarAddress;

/// Concurrent auditors.
const AUDITORS: usize = 16;

/// Compares the answers of every key with its effects, where each effect gives its own answer: a key has exactly one
/// effect, and every answer is that of an effect.
pub(crate) fn audit_effects<A: Clone + Default + PartialEq + Debug>(
    ledger: &Ledger<A>,
    effects: &EffectLog<A>,
) -> Damage {
    let mut damage = Damage { doubles: effects.doubles(), ..Damage::default() };
    for key in ledger.keys() {
        let (found, answers) = (effects.of(key), ledger.answers(key));
        if found.effects == 0 && answers.is_empty() {
            damage.add_fault(key, AuditFault::Stuck("it took no effect".to_owned()));
        } else if found.effects == 0 {
            damage.add_fault(key, AuditFault::Lost(format!("answered {answers:?}, and it took no effect")));
        } else {
            let faults = answers.iter().filter_map(|answer| check_answer(&found, None, answer).err());
            faults.for_each(|fault| damage.add_fault(key, fault));
        }
    }
    damage
}

/// Compares one answer with those that the service gave for its key, and with the one that callers heard before.
pub(crate) fn check_answer<A: PartialEq + Debug>(
    found: &KeyEffects<A>,
    heard: Option<&A>,
    answer: &A,
) -> Result<(), AuditFault> {
    if !found.answers.contains(answer) {
        return Err(AuditFault::Wrong(format!("answered {answer:?}, and not one of {:?}", found.answers)));
    }
    if heard.is_some_and(|heard| heard != answer) {
        return Err(AuditFault::Lost(format!("answered {answer:?}; heard before: {heard:?}")));
    }
    Ok(())
}

/// What the audit of sidecars needs.
pub(crate) struct Audit {
    /// All of them are alive.
    pub(crate) sidecars: Vec<SidecarAddress>,
    /// The admin API of one of them.
    pub(crate) admin: SocketAddr,
    pub(crate) service: OrderService,
    /// A key without a final answer for this long is stuck.
    pub(crate) patience: Duration,
}

/// State that the auditors share.
struct Shared {
    audit: Audit,
    ledger: Ledger<OrderAnswer>,
    next: AtomicU64,
    /// The records that were settled, and their keys.
    settled: Mutex<HashMap<String, u64>>,
    report: Mutex<LoadReport>,
}

impl Audit {
    /// Waits until the service rests, then sends every key once more.
    pub(crate) async fn run(self, load: FinishedLoad) -> Result<LoadReport> {
        self.service.rest(self.patience).await;
        let admin = self.admin;
        let shared = Arc::new(Shared {
            audit: self,
            ledger: load.ledger,
            next: AtomicU64::new(0),
            settled: Mutex::default(),
            report: Mutex::new(load.report),
        });
        let mut auditors = JoinSet::new();
        for number in 0..AUDITORS {
            auditors.spawn(Auditor::new(shared.clone(), number).await?.audit());
        }
        while let Some(ended) = auditors.join_next().await {
            ended??;
        }
        let open = AdminClient::connect(admin).await?.open_records().await;
        let mut report = std::mem::take(&mut *shared.report.lock());
        let stuck = &mut report.damage.stuck;
        match open {
            Ok(open) => {
                let settled = shared.settled.lock();
                stuck.extend(open.into_iter().map(|(id, state)| match settled.get(&id) {
                    Some(key) => format!("record {id} is {state} again; key {key} was settled"),
                    None => format!("record {id} is still {state}, and no attempt of a key reported it"),
                }));
            }
            Err(fault) => stuck.push(format!("open records cannot be listed: {fault:#}")),
        }
        report.damage.doubles = shared.audit.service.effects.doubles();
        Ok(report)
    }
}

struct Auditor {
    shared: Arc<Shared>,
    caller: Caller,
    admin: AdminClient,
}

impl Auditor {
    async fn new(shared: Arc<Shared>, number: usize) -> Result<Self> {
        let caller = Caller::new(shared.audit.sidecars.clone(), number);
        let admin = AdminClient::connect(shared.audit.admin).await?;
        Ok(Self { shared, caller, admin })
    }

    async fn audit(mut self) -> Result<()> {
        loop {
            let key = self.shared.next.fetch_add(1, Ordering::Relaxed);
            if key >= self.shared.ledger.keys().end || self.shared.report.lock().is_hopeless() {
                return Ok(());
            }
            let mut result = self.final_result(key).await;
            if let Some(AttemptResult::Answered { source: AnswerSource::Unrecorded, .. }) = result {
                // It was executed just now, and the store was slow. The next attempt gets what the store holds.
                result = self.final_result(key).await;
            }
            let fault = match result {
                None => Some(AuditFault::Stuck("in progress, and no attempt runs".to_owned())),
                Some(result) => {
                    let found = self.shared.audit.service.effects.of(key);
                    let heard = self.shared.ledger.first_answer(key);
                    let fault = check_result(&found, heard.as_ref(), &result).err();
                    let settled = match &result {
                        AttemptResult::Uncertain(Some(id)) => self.settle(key, &found, id).await?,
                        _ => None,
                    };
                    fault.or(settled.map(AuditFault::Lost))
                }
            };
            fault.into_iter().for_each(|fault| self.shared.report.lock().damage.add_fault(key, fault));
        }
    }

    /// Retries until there is a final result. None when there is none in time.
    async fn final_result(&mut self, key: u64) -> Option<AttemptResult> {
        let until = Instant::now() + self.shared.audit.patience;
        while Instant::now() < until {
            match self.caller.attempt(key).await {
                AttemptResult::Retry => {}
                // Longer than the lease: a second refusal of this kind is final, unless another attempt runs.
                AttemptResult::InProgress(wait) => sleep(wait).await,
                result => return Some(result),
            }
        }
        None
    }

    /// Settles an uncertain key by the effect log and checks the results of its retries. Returns what is wrong.
    async fn settle(
        &mut self,
        key: u64,
        found: &KeyEffects<OrderAnswer>,
        id: &str,
    ) -> Result<Option<String>> {
        let was_applied = found.effects > 0;
        if let Err(fault) = self.admin.settle(id, was_applied).await {
            return Ok(Some(format!("cannot be settled: {fault:#}")));
        }
        self.shared.settled.lock().insert(id.to_owned(), key);
        let (first, second) = (self.final_result(key).await, self.final_result(key).await);
        let after = self.shared.audit.service.effects.of(key);
        let mut report = self.shared.report.lock();
        report.uncertain += 1;
        *(if was_applied { &mut report.applied } else { &mut report.not_applied }) += 1;
        let is_right = if was_applied {
            after.effects == found.effects && [&first, &second] == [&Some(AttemptResult::Unavailable); 2]
        } else {
            ran_once(&after, first.as_ref(), second.as_ref())
        };
        let wrong =
            || format!("settled, applied: {was_applied}; then its retries got {first:?} and {second:?}");
        Ok((!is_right).then(wrong))
    }
}

/// Whether the retries of a key that was settled as not applied executed it and then replayed the answer. The first
/// answer may be marked as not recorded, where the store was slow.
fn ran_once(
    after: &KeyEffects<OrderAnswer>,
    first: Option<&AttemptResult>,
    second: Option<&AttemptResult>,
) -> bool {
    after.answers.last().is_some_and(|answer| {
        let answered = |source| AttemptResult::Answered { answer: answer.clone(), source };
        let executed = [answered(AnswerSource::Executed), answered(AnswerSource::Unrecorded)];
        first.is_some_and(|first| executed.contains(first)) && second == Some(&answered(AnswerSource::Replay))
    })
}

/// Whether the final result of a key agrees with the effect log, and with what callers heard before.
fn check_result(
    found: &KeyEffects<OrderAnswer>,
    heard: Option<&OrderAnswer>,
    result: &AttemptResult,
) -> Result<(), AuditFault> {
    if let AttemptResult::Answered { answer, .. } = result {
        check_answer(found, heard, answer)?;
    }
    match result {
        AttemptResult::Answered { source: AnswerSource::Replay, .. } => Ok(()),
        // Its owner released the claim after all its callers had gone.
        AttemptResult::Answered { source: AnswerSource::Executed, .. }
            if heard.is_none() && found.effects == 1 =>
        {
            Ok(())
        }
        AttemptResult::Uncertain(Some(_)) if heard.is_none() => Ok(()),
        _ => Err(AuditFault::Lost(format!(
            "{result:?}, where the service answered {:?}; heard before: {heard:?}",
            found.answers
        ))),
    }
}

#[cfg(test)]
mod tests;
