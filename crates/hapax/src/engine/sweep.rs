//! The engine's own sweeper: small batches at intervals, so that no job has to be set up for it.

use std::time::Duration;

use hapax_core::Nonce;
use tokio_util::sync::CancellationToken;

use super::calls::Calls;
use crate::observe;

/// Small enough that a batch never holds up a claim for long.
const BATCH: usize = 1000;
/// A batch on a slow disk may take longer than a claim ever should.
const BATCH_TIME_MAX: Duration = Duration::from_secs(60);
/// A batch whose answer was lost may have been swept, so the next one is tried; but not for ever.
const LOST_ANSWERS_MAX: u32 = 10;

/// Sweeps every `every`, give or take a tenth, until `stop`.
pub(crate) async fn sweep_for_ever(calls: Calls, every: Duration, stop: CancellationToken) {
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = tokio::time::sleep(jittered(every)) => {}
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = sweep(&calls) => {}
        }
    }
}

async fn sweep(calls: &Calls) {
    let mut lost_answers = 0;
    loop {
        match calls.once("sweep", BATCH_TIME_MAX, calls.store.sweep(BATCH)).await {
            Ok(swept) => {
                observe::swept(&swept);
                if !swept.more {
                    break;
                }
            }
            Err(error) if error.is_unknown() && lost_answers < LOST_ANSWERS_MAX => lost_answers += 1,
            Err(error) => {
                tracing::warn!(%error, "failed to sweep; retrying at the next interval");
                return;
            }
        }
        tokio::task::yield_now().await;
    }
    if let Ok(stats) = calls.once("stats", BATCH_TIME_MAX, calls.store.stats()).await {
        observe::uncertain(stats.uncertain);
    }
}

/// Processes that started together do not sweep together.
fn jittered(every: Duration) -> Duration {
    let chance = u32::from(Nonce::random().as_bytes()[0]);
    every * 9 / 10 + every / 5 * chance / 255
}
