//! Unreadable records: present, reported as unreadable, never run again, never left out, never swept.

use hapax_core::{Claim, Deleted, Fenced, Lookup, Query, Settled, State, StoreErrorKind, Verdict};

use super::script::*;
use crate::rig::{Removal, Rig};

/// An unreadable record is present: a claim is not granted, whatever it allows.
pub async fn an_unreadable_record_is_not_claimed(rig: &impl Rig) {
    let store = rig.store();
    for state in State::ALL {
        let (ask, _) = in_state(rig, &*store, state).await;
        if !rig.damage(&ask.key.id).await {
            return;
        }
        for again in [retry(&ask), takeover(&ask), ask.clone()] {
            assert_eq!(claim(&*store, &again).await, Claim::Unreadable, "in state {state}");
        }
    }
}

/// Reads and lists report unreadable records.
pub async fn an_unreadable_record_is_shown(rig: &impl Rig) {
    let store = rig.store();
    let (ask, _) = in_state(rig, &*store, State::Completed).await;
    in_state(rig, &*store, State::Failed).await;
    if !rig.damage(&ask.key.id).await {
        return;
    }
    let lookup = store.get(&ask.key.id).await.expect("get answers");
    assert!(matches!(lookup, Lookup::Unreadable { .. }), "{lookup:?}");
    let page = store.list(&Query::default()).await.expect("list answers");
    assert_eq!(page.unreadable, [ask.key.id]);
    assert_eq!(page.records.len(), 1, "readable records are shown as before");
}

/// A write does not overwrite an unreadable record, and does not report that it was applied.
pub async fn an_unreadable_record_is_not_overwritten(rig: &impl Rig) {
    let store = rig.store();
    let (ask, lease) = in_state(rig, &*store, State::InProgress).await;
    if !rig.damage(&ask.key.id).await {
        return;
    }
    for write in Write::ALL {
        match write.try_send(rig, &*store, &lease).await {
            Ok(answer) => assert_eq!(answer, Fenced::Lost, "{write:?}"),
            Err(error) => assert_eq!(error.kind(), StoreErrorKind::Incompatible, "{write:?}"),
        }
    }
    let settlement = settlement(lease.fence.nonce, Verdict::NotApplied);
    match store.settle(&ask.key.id, &settlement).await {
        Ok(answer) => assert_ne!(answer, Settled::Applied),
        Err(error) => assert_eq!(error.kind(), StoreErrorKind::Incompatible),
    }
    assert_eq!(claim(&*store, &retry(&ask)).await, Claim::Unreadable);
}

/// A sweep does not remove an unreadable record, and a deletion does not report it as absent.
pub async fn an_unreadable_record_is_not_swept(rig: &impl Rig) {
    let store = rig.store();
    let (ask, lease) = in_state(rig, &*store, State::Completed).await;
    if rig.facts().removal == Removal::ByServer || !rig.damage(&ask.key.id).await {
        return;
    }
    rig.advance(retention(rig) * 2).await;
    store.sweep(100).await.expect("sweep answers");
    assert_eq!(claim(&*store, &retry(&ask)).await, Claim::Unreadable);
    if let Ok(deleted) = store.delete(&ask.key.id, lease.fence.nonce).await {
        assert_ne!(deleted, Deleted::Absent);
    }
}
