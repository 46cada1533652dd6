//! [`Work`]: what a simulated handler does.

use std::sync::Arc;
use std::time::Duration;

use hapax::{Context, Fail};
use tokio::time::sleep;

use super::LATE;
use super::event::{CallId, FaultSite, KeyId, RunEnd, RunError, RunId};
use super::gate::{Gate, HandlerFault};

/// A handler: it waits, has its one effect, waits again and ends.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// How long it takes until its effect.
    pub before: Duration,
    /// How long it takes after it.
    pub after: Duration,
    /// Whether there is an effect.
    pub has_effect: bool,
    /// Whether it confirms a doubtful lease before its effect, and returns a retry if it was lost.
    pub is_careful: bool,
    /// How it ends.
    pub ending: RunEnd,
    /// The fault before its effect.
    pub fault_before: Option<HandlerFault>,
    /// The fault after it.
    pub fault_after: Option<HandlerFault>,
}

impl Work {
    /// A handler that takes this long, half of it before its effect, and ends with a value.
    pub fn taking(ms: u64) -> Self {
        let half = Duration::from_millis(ms / 2);
        Self {
            before: half,
            after: half,
            has_effect: true,
            is_careful: false,
            ending: RunEnd::Value,
            fault_before: None,
            fault_after: None,
        }
    }

    /// The same with another end.
    pub fn ending(mut self, ending: RunEnd) -> Self {
        self.ending = ending;
        self
    }

    /// Runs it for `call` of the process behind `gate`.
    pub async fn run(
        self,
        gate: Arc<Gate>,
        call: CallId,
        key: KeyId,
        context: Context,
    ) -> Result<u32, Fail<RunError>> {
        // An answer that was in flight when the process died still reaches its engine, and has no further effect.
        gate.open().await;
        let traced = &gate.traced;
        let run = traced.started(call, gate.process, key, context.fence());
        if let Some(ending) = pass_fault_point(&gate, self.fault_before).await {
            return end(&gate, run, ending);
        }
        rest(self.before).await;
        gate.open().await;
        if self.is_careful && context.is_lease_doubtful() && context.confirm().await.is_err() {
            return end(&gate, run, RunEnd::Retry);
        }
        gate.open().await;
        if self.has_effect {
            traced.took_effect(run);
        }
        if let Some(ending) = pass_fault_point(&gate, self.fault_after).await {
            return end(&gate, run, ending);
        }
        rest(self.after).await;
        gate.open().await;
        end(&gate, run, self.ending)
    }
}

/// Passes one fault point. Returns how the handler ends if it ends here.
async fn pass_fault_point(gate: &Gate, planned: Option<HandlerFault>) -> Option<RunEnd> {
    let fault = gate.handler_fault(planned)?;
    gate.traced.fault_injected(gate.process, fault.kind(), FaultSite::Handler);
    match fault {
        HandlerFault::Retry => return Some(RunEnd::Retry),
        HandlerFault::Unknown => return Some(RunEnd::Unknown),
        HandlerFault::Panic => return Some(RunEnd::Panic),
        HandlerFault::Slow => sleep(LATE).await,
        HandlerFault::HangUp => gate.hang_up(),
        HandlerFault::Crash => gate.crash(),
        HandlerFault::StepStore => gate.step_store(),
        HandlerFault::Freeze => gate.freeze(),
    }
    // Tasks that it woke run first.
    tokio::task::yield_now().await;
    gate.open().await;
    None
}

fn end(gate: &Gate, run: RunId, ending: RunEnd) -> Result<u32, Fail<RunError>> {
    gate.traced.ended(run, ending);
    match ending {
        RunEnd::Value => Ok(run.0),
        RunEnd::Retry => Err(Fail::Retry(RunError(run))),
        RunEnd::Final => Err(Fail::permanent(RunError(run))),
        RunEnd::Unknown => Err(Fail::Unknown(RunError(run))),
        RunEnd::Panic => panic!("planned panic of {run}"),
    }
}

async fn rest(span: Duration) {
    if !span.is_zero() {
        sleep(span).await;
    }
}
