//! `hapax sweep`: removes expired records, once or at an interval.

use std::time::Duration;

use hapax_core::{Store, StoreError, StoreErrorKind, Swept};
use serde_json::json;
use tokio::sync::watch;

use super::Context;
use crate::args::Sweep;
use crate::failure::{self, Code, Failure};
use crate::output::note;
use crate::progress::Progress;
use crate::signals::Signals;
use crate::stores::Access;

pub(crate) async fn run(sweep: &Sweep, context: &Context) -> Result<(), Failure> {
    let mut stop = stop_signal()?;
    let batch_max = sweep.batch as usize;
    let Some(every) = sweep.every else {
        return round(batch_max, context, &stop).await;
    };
    // A store that cannot be used fails the command at once, not after an interval.
    round(batch_max, context, &stop).await?;
    while !stopped_within(every, &mut stop).await {
        match round(batch_max, context, &stop).await {
            Err(failure) if is_passing(&failure) => failure::report(&failure, context.output.json),
            ended => ended?,
        }
    }
    Ok(())
}

/// Sweeps until nothing is due. The store is only open meanwhile, so that a service can own the directory between two
/// rounds.
async fn round(batch_max: usize, context: &Context, stop: &watch::Receiver<bool>) -> Result<(), Failure> {
    let store = context.store.open_shared(Access::Write).await?;
    let swept = sweep_all(&*store, batch_max, stop)
        .await
        .map_err(|error| Failure::store(error, format!("cannot sweep {}", context.store)))?;
    drop(store);
    if swept.dropped > 0 {
        note(&format!("warning: {} record(s) never finished and were not settled: dropped", swept.dropped));
    }
    if context.output.json {
        context
            .output
            .document(&json!({ "expired": swept.expired, "dropped": swept.dropped, "more": swept.more }))
    } else {
        let more = if swept.more { "; stopped before the end" } else { "" };
        context.output.text(&format!("removed {} expired, {} dropped{more}", swept.expired, swept.dropped))
    }
}

/// Sweeps in batches, and stops between two of them if asked to.
async fn sweep_all(
    store: &dyn Store,
    batch_max: usize,
    stop: &watch::Receiver<bool>,
) -> Result<Swept, StoreError> {
    let mut progress = Progress::new();
    let mut total = Swept::default();
    loop {
        let swept = store.sweep(batch_max).await?;
        total.expired += swept.expired;
        total.dropped += swept.dropped;
        total.more = swept.more;
        if !total.more || *stop.borrow() {
            return Ok(total);
        }
        progress.show(format_args!("{} removed so far", total.expired + total.dropped));
    }
}

/// Whether the failure may be temporary: another process has the store open, or it is unavailable.
fn is_passing(failure: &Failure) -> bool {
    matches!(failure.code(), Code::Store(StoreErrorKind::InUse | StoreErrorKind::Unavailable))
}

async fn stopped_within(span: Duration, stop: &mut watch::Receiver<bool>) -> bool {
    tokio::time::timeout(span, stop.wait_for(|stopped| *stopped)).await.is_ok()
}

/// Becomes true on a shutdown signal.
fn stop_signal() -> Result<watch::Receiver<bool>, Failure> {
    let (stopping, stop) = watch::channel(false);
    let mut signals = Signals::new()?;
    tokio::spawn(async move {
        signals.shutdown().await;
        stopping.send_replace(true);
        // The sender is kept: a closed channel would count as a request to stop.
        std::future::pending::<()>().await;
    });
    Ok(stop)
}
