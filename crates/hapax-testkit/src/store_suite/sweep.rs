//! Sweeping: removes what is due, in small batches, and nothing else.

use hapax_core::{ClaimRequest, Fenced, State, Store, Swept};

use super::script::*;
use crate::rig::{Removal, Rig};

/// Records that are finished and whose retention is over are removed and counted.
pub async fn expired_records_are_removed(rig: &impl Rig) {
    let store = rig.store();
    let mut asks = Vec::new();
    for state in [State::Completed, State::Failed] {
        asks.push(in_state(rig, &*store, state).await.0);
    }
    assert_eq!(sweep(&*store, 100).await, Swept::default(), "nothing is due yet");
    rig.advance(retention(rig)).await;

    let swept = sweep(&*store, 100).await;

    if rig.facts().removal == Removal::BySweep {
        assert_eq!(swept, Swept { expired: 2, dropped: 0, more: false });
    }
    for ask in asks {
        assert_eq!(found(&*store, &ask.key.id).await, None);
    }
    assert_eq!(sweep(&*store, 100).await, Swept::default());
    assert_eq!(store.stats().await.expect("stats answers").records(), 0);
}

/// a claim with a lease, a record within its retention and an uncertain one that is not due stay.
pub async fn records_that_are_not_due_stay(rig: &impl Rig) {
    let store = rig.store();
    let believed = ClaimRequest { uncertain_retention: rig.facts().lease, ..ask(rig, "believed") };
    let lease = acquire(&*store, &believed).await;
    let mut asks = vec![believed];
    for state in [State::Completed, State::Failed, State::Uncertain, State::Released] {
        asks.push(in_state(rig, &*store, state).await.0);
    }
    for _ in 0..3 {
        rig.advance(rig.facts().lease * 2 / 3).await;
        assert_eq!(store.renew(&lease).await.expect("renew answers"), Fenced::Applied);
        assert_eq!(sweep(&*store, 100).await, Swept::default());
    }
    for ask in asks {
        assert!(found(&*store, &ask.key.id).await.is_some(), "{:?} stays", ask.key);
    }
}

/// An uncertain record that is not settled within its retention is dropped, and counted separately, for alerts.
pub async fn unsettled_records_are_dropped_and_counted(rig: &impl Rig) {
    let store = rig.store();
    let lapsed = ClaimRequest { uncertain_retention: rig.facts().lease * 2, ..ask(rig, "lapsed") };
    acquire(&*store, &lapsed).await;
    let noticed = ClaimRequest { uncertain_retention: rig.facts().lease * 2, ..ask(rig, "noticed") };
    acquire(&*store, &noticed).await;
    rig.advance(rig.facts().lease).await;
    claim(&*store, &retry(&noticed)).await;
    assert_eq!(sweep(&*store, 100).await, Swept::default(), "they have a lease more");
    rig.advance(rig.facts().lease).await;

    let swept = sweep(&*store, 100).await;

    if rig.facts().removal == Removal::BySweep {
        assert_eq!(swept, Swept { expired: 0, dropped: 2, more: false });
    }
    assert_eq!(acquire(&*store, &retry(&lapsed)).await.fence.attempt, 1);
    assert_eq!(acquire(&*store, &retry(&noticed)).await.fence.attempt, 1);
}

/// A sweep removes at most its batch and says whether there is more.
pub async fn a_batch_is_a_limit(rig: &impl Rig) {
    if rig.facts().removal == Removal::ByServer {
        return;
    }
    let store = rig.store();
    for number in 0..7 {
        let lease = acquire(&*store, &ask(rig, &format!("batch {number}"))).await;
        complete(rig, &*store, &lease, &outcome("done")).await;
    }
    rig.advance(retention(rig)).await;
    for left in [7, 4, 1] {
        assert_eq!(store.stats().await.expect("stats answers").records(), left);
        let expired = left.min(3);
        assert_eq!(sweep(&*store, 3).await, Swept { expired, dropped: 0, more: left > 3 });
    }
    assert_eq!(store.stats().await.expect("stats answers").records(), 0);
}

async fn sweep(store: &dyn Store, batch_max: usize) -> Swept {
    store.sweep(batch_max).await.expect("sweep answers")
}
