//! [`Work`]: what a simulated handler does.

use std::sync::Arc;
use std::time::Duration;

use hapax::{Context, Fail};
use tokio::time::sleep;

use super::LATE;
use super::event::{CallId, Ending, KeyId, Oops, Place, RunId};
use super::gate::{Gate, Trap};

/// A handler: it waits, has its one effect, waits again and ends.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// How long it takes until its effect.
    pub before: Duration,
    /// How long it takes after it.
    pub after: Duration,
    /// Whether there is an effect.
    pub has_effect: bool,
    /// Whether it asks the store before its effect when its lease is in doubt, and gives up if it lost it.
    pub is_careful: bool,
    /// How it ends.
    pub ending: Ending,
    /// What goes wrong before its effect.
    pub trouble_before: Option<Trap>,
    /// What goes wrong after it.
    pub trouble_after: Option<Trap>,
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
            ending: Ending::Value,
            trouble_before: None,
            trouble_after: None,
        }
    }

    /// The same with another end.
    pub fn ending(mut self, ending: Ending) -> Self {
        self.ending = ending;
        self
    }

    /// Does it, as `call` of the process behind `gate`.
    pub async fn run(
        self,
        gate: Arc<Gate>,
        call: CallId,
        key: KeyId,
        context: Context,
    ) -> Result<u32, Fail<Oops>> {
        // An answer that was under way when the process died still reaches its engine, and goes no further.
        gate.open().await;
        let ground = &gate.ground;
        let run = ground.started(call, gate.process, key, context.fence());
        if let Some(ending) = trip(&gate, self.trouble_before).await {
            return end(&gate, run, ending);
        }
        rest(self.before).await;
        gate.open().await;
        if self.is_careful && context.is_lease_doubtful() && context.confirm().await.is_err() {
            return end(&gate, run, Ending::Retry);
        }
        gate.open().await;
        if self.has_effect {
            ground.happened(run);
        }
        if let Some(ending) = trip(&gate, self.trouble_after).await {
            return end(&gate, run, ending);
        }
        rest(self.after).await;
        gate.open().await;
        end(&gate, run, self.ending)
    }
}

/// Passes one moment at which something may go wrong; tells how the handler ends if it ends here.
async fn trip(gate: &Gate, planned: Option<Trap>) -> Option<Ending> {
    let trap = gate.moment(planned)?;
    gate.ground.struck(gate.process, trap.kind(), Place::Handler);
    match trap {
        Trap::Retry => return Some(Ending::Retry),
        Trap::Unknown => return Some(Ending::Unknown),
        Trap::Panic => return Some(Ending::Panic),
        Trap::Slow => sleep(LATE).await,
        Trap::HangUp => gate.hang_up(),
        Trap::Crash => gate.crash(),
        Trap::StepStore => gate.step_store(),
        Trap::Freeze => gate.freeze(),
    }
    // Whoever was woken by it goes first.
    tokio::task::yield_now().await;
    gate.open().await;
    None
}

fn end(gate: &Gate, run: RunId, ending: Ending) -> Result<u32, Fail<Oops>> {
    gate.ground.ended(run, ending);
    match ending {
        Ending::Value => Ok(run.0),
        Ending::Retry => Err(Fail::Retry(Oops(run))),
        Ending::Final => Err(Fail::last(Oops(run))),
        Ending::Unknown => Err(Fail::Unknown(Oops(run))),
        Ending::Panic => panic!("planned panic of {run}"),
    }
}

async fn rest(span: Duration) {
    if !span.is_zero() {
        sleep(span).await;
    }
}
