//! Compares the notes and the journal with the effect log, then settles what is uncertain and makes those calls again.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context as _, Result};
use hapax_client::{Client, Error, Key, OpenCallState};

use super::caller::{self, list_path};
use super::work_list::{self, CallEnd};
use super::{ClientReport, Rig};
use crate::rig::admin::AdminClient;

/// Executions of calls whose caller was killed have ended by then.
const PATIENCE: Duration = Duration::from_secs(60);

impl Rig<'_> {
    /// The whole audit. A planted defect is found before anything is settled.
    pub(super) async fn audit(&self, mut report: ClientReport) -> Result<ClientReport> {
        self.service.rest(PATIENCE).await;
        let client = caller::client(self.folder())?;
        let noted = work_list::read(&list_path(self.folder()))?;
        let open: HashMap<Key, OpenCallState> =
            client.open_calls().into_iter().map(|call| (call.key, call.state)).collect();
        let mut uncertain = Vec::new();
        for id in 0..self.plan.calls {
            let effects = self.service.effects.of(id).effects;
            let end = noted.ends.get(&id).copied().flatten();
            match (end, open.get(&caller::key(id)?)) {
                (Some(CallEnd::Uncertain), Some(OpenCallState::Uncertain)) => uncertain.push(id),
                (Some(CallEnd::Answered), None) if effects > 0 => {}
                (end, open) => report.missing.push(format!(
                    "call {id} took effect {effects} times; its end is {end:?}, in the journal it is {open:?}"
                )),
            }
        }
        report.uncertain = uncertain.len() as u64;
        if self.plan.defect.is_none() {
            self.settle_all(&client, &uncertain, &mut report).await?;
        }
        report.doubles = self.service.effects.doubles();
        Ok(report)
    }

    /// Settles calls by the effect log and makes them again. Each has one effect then, and the journal is empty.
    async fn settle_all(&self, client: &Client, calls: &[u64], report: &mut ClientReport) -> Result<()> {
        let mut admin = AdminClient::connect(self.slot.sidecar()?.admin).await?;
        for id in calls {
            let was_applied = self.service.effects.of(*id).effects > 0;
            admin.settle(&self.operation(client, *id).await?, was_applied).await?;
            report.applied += u64::from(was_applied);
            let result = caller::request(client, self.address(), *id, caller::key(*id)?).send().await;
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
    async fn operation(&self, client: &Client, id: u64) -> Result<String> {
        let result = caller::request(client, self.address(), id, caller::key(id)?).send().await;
        let operation = match &result {
            Err(Error::Uncertain { operation, .. }) => operation.clone(),
            _ => None,
        };
        operation.with_context(|| format!("call {id} was uncertain, and is {result:?} now"))
    }
}
