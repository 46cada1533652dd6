//! Compares the notes and the journal with the effect log: after each kill, and at the end. Then settles what is uncertain
//! and makes those calls again.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context as _, Result};
use hapax_client::{Client, Error, Key, OpenCallState};

use super::caller::{self, Keys, list_path};
use super::killed_journal::KilledJournal;
use super::work_list::{self, CallEnd, Noted};
use super::{ClientReport, Rig};
use crate::rig::admin::AdminClient;

/// Executions of calls whose caller was killed have ended by then.
const PATIENCE: Duration = Duration::from_secs(60);

impl Rig<'_> {
    /// After a kill: a call that the service has seen and not answered must be in the journal, or the next process does not
    /// know that it was made.
    pub(super) fn audit_kill(&self, journal: &KilledJournal, report: &mut ClientReport) -> Result<()> {
        let open = journal.open_keys()?;
        let noted = work_list::read(&list_path(self.folder()))?;
        for (id, key) in &noted.keys {
            let is_answered = !self.service.effects.of(*id).answers.is_empty();
            if !noted.is_unfinished(*id) || is_answered || !self.service.has_seen(*id) {
                continue;
            }
            report.checked += 1;
            if !open.contains(key) {
                report.forgotten.push(format!("call {id} was under way, and is not in the journal"));
            }
        }
        Ok(())
    }

    /// The audit at the end. A planted defect is found before anything is settled.
    pub(super) async fn audit(&self, mut report: ClientReport) -> Result<ClientReport> {
        self.service.rest(PATIENCE).await;
        let client = caller::client(self.folder())?;
        let noted = work_list::read(&list_path(self.folder()))?;
        let open: HashMap<Key, OpenCallState> =
            client.open_calls().into_iter().map(|call| (call.key, call.state)).collect();
        let mut uncertain = Vec::new();
        for id in 0..self.plan.calls {
            let end = noted.ends.get(&id).and_then(Option::as_ref);
            let state = noted.keys.get(&id).and_then(|key| open.get(key));
            match self.ending(id, end, state) {
                Ending::Right => {}
                Ending::Uncertain => uncertain.push(id),
                Ending::Wrong => {
                    let effects = self.service.effects.of(id).effects;
                    report.missing.push(format!(
                        "call {id} took effect {effects} times; its end is {end:?}, in the journal it is {state:?}"
                    ));
                }
            }
        }
        self.compare_answers(&noted, &mut report);
        report.resumed = noted.resumed;
        report.uncertain = uncertain.len() as u64;
        if self.plan.defect.is_none() {
            self.settle_all(&client, &noted, &uncertain, &mut report).await?;
        }
        report.doubles = self.service.effects.doubles();
        Ok(report)
    }

    /// Whether a call ended as its effects say.
    fn ending(&self, id: u64, end: Option<&CallEnd>, state: Option<&OpenCallState>) -> Ending {
        let found = self.service.effects.of(id);
        match (end, state) {
            (Some(CallEnd::Uncertain), Some(OpenCallState::Uncertain)) => Ending::Uncertain,
            (Some(CallEnd::Answered(_)), None) if found.effects > 0 => Ending::Right,
            (_, _) if self.plan.keys == Keys::Derived => Ending::Wrong,
            // Its process was killed after the journal had its end and before the list had it. No other process repeats it.
            (None, Some(OpenCallState::Uncertain)) => Ending::Uncertain,
            (None, None) if !found.answers.is_empty() => Ending::Right,
            // It was killed before the call was in the journal.
            (None, None) if !self.service.has_seen(id) => Ending::Right,
            _ => Ending::Wrong,
        }
    }

    /// Every answer of a call must be the one that the service gave.
    fn compare_answers(&self, noted: &Noted, report: &mut ClientReport) {
        for (id, answers) in &noted.answers {
            let given = self.service.effects.of(*id).answers;
            let is_given = |answer: &work_list::CallAnswer| {
                given.iter().any(|given| (given.status, &given.body) == (answer.status, &answer.body))
            };
            if answers.len() > 1 || !answers.iter().all(is_given) {
                report.changed.push(format!("call {id} was answered {given:?}, its caller got {answers:?}"));
            }
        }
    }

    /// Settles calls by the effect log and makes them again. Each has one effect then, and the journal is empty.
    async fn settle_all(
        &self,
        client: &Client,
        noted: &Noted,
        calls: &[u64],
        report: &mut ClientReport,
    ) -> Result<()> {
        let mut admin = AdminClient::connect(self.slot.sidecar()?.admin).await?;
        for id in calls {
            let key = noted.keys.get(id).context("an uncertain call has no key")?;
            let was_applied = self.service.effects.of(*id).effects > 0;
            admin.settle(&self.operation(client, *id, key).await?, was_applied).await?;
            report.applied += u64::from(was_applied);
            let result = caller::request(client, self.address(), *id, key.clone()).send().await;
            let effects = self.service.effects.of(*id).effects;
            let is_right = match &result {
                Ok(_) => !was_applied,
                Err(Error::Refused { problem, .. }) => was_applied && problem.code() == "result-unavailable",
                Err(_) => false,
            };
            if effects != 1 || !is_right {
                report.missing.push(format!(
                    "call {id} was settled, applied: {was_applied}; it took effect {effects} times and got {result:?}"
                ));
            }
        }
        let open = client.open_calls();
        report.missing.extend(open.iter().map(|call| format!("{call:?} is open after its settlement")));
        Ok(())
    }

    /// The record of an uncertain call, as the sidecar names it.
    async fn operation(&self, client: &Client, id: u64, key: &Key) -> Result<String> {
        let result = caller::request(client, self.address(), id, key.clone()).send().await;
        let operation = match &result {
            Err(Error::Uncertain { operation, .. }) => operation.clone(),
            _ => None,
        };
        operation.with_context(|| format!("call {id} was uncertain, and is {result:?} now"))
    }
}

/// What the audit says of the end of a call.
enum Ending {
    Right,
    Uncertain,
    Wrong,
}
