//! Limits: what exceeds a limit is refused before it has an effect, and other records are not affected.

use std::fmt::Debug;

use hapax_core::{
    ClaimRequest, Class, Deleted, Fenced, Format, Reason, Recorded, Scope, State, Store, StoreError,
    StoreErrorKind, Verdict,
};

use super::script::*;
use crate::rig::Rig;

/// Records that the store of the full-store case holds.
const RECORDS_MAX: usize = 8;

/// Larger outcome limits are not tested: the outcome has to be built, and held in memory several times.
const LIMIT_MAX: usize = 64 << 20;

/// An outcome that every store without such a limit takes: the default limit of a captured response.
const OUTCOME_BYTES: usize = 1 << 20;

/// The largest outcome that the store accepts is replayed byte for byte.
pub async fn a_large_outcome_is_kept(rig: &impl Rig) {
    let store = rig.store();
    let ask = ask(rig, "large");
    let lease = acquire(&*store, &ask).await;
    let bytes = limit(&*store).unwrap_or(OUTCOME_BYTES);
    let payload: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
    let done = Recorded::new(Class::Success, Format::HTTP, payload);
    assert_eq!(complete(rig, &*store, &lease, &done).await, Fenced::Applied);
    assert_replays(&claim(&*store, &retry(&ask)).await, &done);
}

/// An outcome that is one byte too large is refused by every call and changes nothing: a smaller one may follow.
pub async fn a_too_large_outcome_is_refused(rig: &impl Rig) {
    let store = rig.store();
    let Some(limit) = limit(&*store) else { return };
    let done = Recorded::new(Class::Success, Format::HTTP, vec![0; limit + 1]);
    let ask = ask(rig, "too large");
    let lease = acquire(&*store, &ask).await;
    let before = record(&*store, &ask.key.id).await;
    assert_too_large(store.complete(&lease, &done, retention(rig)).await);
    assert_too_large(store.release(&lease, Some(&done)).await);
    assert_eq!(record(&*store, &ask.key.id).await, before);

    let abandoned = store.abandon(&lease, Reason::Declared).await;
    assert_eq!(abandoned.expect("abandon answers"), Fenced::Applied);
    let before = record(&*store, &ask.key.id).await;
    let verdict = Verdict::Applied { recorded: done, retention: retention(rig) };
    assert_too_large(store.settle(&ask.key.id, &settlement(ask.nonce, verdict)).await);
    assert_eq!(record(&*store, &ask.key.id).await, before);
    assert_eq!(complete(rig, &*store, &lease, &outcome("small")).await, Fenced::Applied);
}

/// The store's own limit, where it has one that can be tested.
fn limit(store: &dyn Store) -> Option<usize> {
    Some(store.outcome_bytes_max()).filter(|bytes| *bytes <= LIMIT_MAX)
}

fn assert_too_large<T: Debug>(answer: Result<T, StoreError>) {
    assert_eq!(answer.expect_err("it is too large").kind(), StoreErrorKind::TooLarge);
}

/// A scope of several thousand characters is stored unchanged.
pub async fn a_long_scope_is_kept(rig: &impl Rig) {
    let store = rig.store();
    let scope = Scope::new(format!("POST /{}", "x".repeat(4000))).in_namespace("n".repeat(200));
    let ask = ClaimRequest { key: key_in(scope, "long"), ..ask(rig, "long") };
    acquire(&*store, &ask).await;
    assert_eq!(record(&*store, &ask.key.id).await.key, ask.key);
}

/// A full store refuses new keys, keeps old ones, lets their owners finish, and takes new keys again when there is
/// room.
pub async fn a_full_store_refuses_only_new_keys(rig: &impl Rig) {
    let Some(store) = rig.small_store(RECORDS_MAX) else { return };
    let mut owners = Vec::new();
    for number in 0..RECORDS_MAX {
        let ask = ask(rig, &format!("room {number}"));
        let lease = acquire(&*store, &ask).await;
        owners.push((ask, lease));
    }
    let late = ask(rig, "no room");
    let error = store.claim(&late).await.expect_err("there is no room");
    assert_eq!(error.kind(), StoreErrorKind::Full);
    assert_eq!(found(&*store, &late.key.id).await, None);

    let done = outcome("done");
    for (ask, lease) in &owners {
        assert_busy(&claim(&*store, &retry(ask)).await);
        assert_eq!(store.renew(lease).await.expect("renew answers"), Fenced::Applied);
        assert_eq!(complete(rig, &*store, lease, &done).await, Fenced::Applied);
        assert_replays(&claim(&*store, &retry(ask)).await, &done);
    }
    store.claim(&late).await.expect_err("there is still no room");

    let (first, lease) = &owners[0];
    let deleted = store.delete(&first.key.id, lease.fence.nonce).await.expect("delete answers");
    assert_eq!(deleted, Deleted::Applied);
    acquire(&*store, &late).await;
    store.claim(&retry(first)).await.expect_err("the room is taken again");

    rig.advance(retention(rig)).await;
    store.sweep(RECORDS_MAX).await.expect("sweep answers");
    acquire(&*store, &retry(first)).await;
    assert_eq!(state(&*store, &first.key.id).await, Some(State::InProgress));
}
