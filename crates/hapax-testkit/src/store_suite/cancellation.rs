//! Cancellation: every call is dropped at each of its awaits in turn. It is applied as a whole or not at all, and the
//! same call again with the same nonce tells which.
//!
//! The store is wrapped in a [`Faulty`], which suspends before and after each call, so that there are awaits to drop
//! at even on a store that never waits.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use hapax_core::{Claim, Deleted, Fenced, Nonce, Reason, Settled, State, Status, Store, Swept, Verdict};

use super::script::*;
use crate::Faulty;
use crate::rig::Rig;

/// More polls than any store call takes.
const POLLS_MAX: usize = 10_000;

/// Sweeps after which no dropped call can still hold a record.
const SWEEPS_MAX: usize = 1000;

/// a dropped claim was applied or not; repeated, it is the first attempt either way.
pub async fn a_dropped_claim_may_be_repeated(rig: &impl Rig) {
    let store = Faulty::new(rig.store());
    for polls in 0..POLLS_MAX {
        let ask = ask(rig, &format!("claim {polls}"));
        let ended = cut(polls, store.claim(&ask)).await.is_some();
        if let Some(record) = found(&store, &ask.key.id).await {
            assert_eq!((record.state(), record.fence.nonce), (State::InProgress, ask.nonce));
        }
        assert_eq!(claim(&store, &ask).await, Claim::Acquired(lease_of(&ask, 1)), "after {polls} polls");
        assert_busy(&claim(&store, &retry(&ask)).await);
        if ended {
            return;
        }
    }
    panic!("a claim should end");
}

/// the caller of a dropped claim can release the key, whether or not the claim was applied.
pub async fn a_dropped_claim_may_be_released(rig: &impl Rig) {
    let store = Faulty::new(rig.store());
    for polls in 0..POLLS_MAX {
        let ask = ask(rig, &format!("dropped {polls}"));
        let ended = cut(polls, store.claim(&ask)).await.is_some();
        release(&store, &lease_of(&ask, 1)).await;
        let next = acquire(&store, &retry(&ask)).await;
        assert!(next.fence.attempt <= 2, "after {polls} polls");
        if ended {
            return;
        }
    }
    panic!("a claim should end");
}

/// a dropped renewal extended the lease or not, and changed nothing else.
pub async fn a_dropped_renewal_may_be_repeated(rig: &impl Rig) {
    let store = Faulty::new(rig.store());
    for polls in 0..POLLS_MAX {
        let ask = ask(rig, &format!("renew {polls}"));
        let lease = acquire(&store, &ask).await;
        let before = record(&store, &ask.key.id).await;
        let ended = cut(polls, store.renew(&lease)).await.is_some();
        let after = record(&store, &ask.key.id).await;
        assert!(matches!(after.status, Status::InProgress { .. }), "after {polls} polls");
        assert_eq!((after.fence, after.updated_at), (before.fence, before.updated_at));
        assert_eq!(store.renew(&lease).await.expect("renew answers"), Fenced::Applied);
        if ended {
            return;
        }
    }
    panic!("a renewal should end");
}

/// D-04: a dropped completion pinned its outcome or not, never another outcome or a part.
pub async fn a_dropped_completion_may_be_repeated(rig: &impl Rig) {
    let store = Faulty::new(rig.store());
    let done = outcome("all of it");
    for polls in 0..POLLS_MAX {
        let ask = ask(rig, &format!("complete {polls}"));
        let lease = acquire(&store, &ask).await;
        let ended = cut(polls, store.complete(&lease, &done, retention(rig))).await.is_some();
        let after = record(&store, &ask.key.id).await;
        match after.state() {
            State::InProgress => assert_eq!(after.fence, lease.fence),
            State::Completed => assert_eq!(after.recorded(), Some(&done)),
            other => panic!("the record is in state {other} after {polls} polls"),
        }
        assert_eq!(complete(rig, &store, &lease, &done).await, Fenced::Applied, "after {polls} polls");
        assert_replays(&claim(&store, &retry(&ask)).await, &done);
        if ended {
            return;
        }
    }
    panic!("a completion should end");
}

/// a dropped release or abandonment was applied or not.
pub async fn a_dropped_ending_may_be_repeated(rig: &impl Rig) {
    let store = Faulty::new(rig.store());
    for (write, after_it) in [(Write::Release, State::Released), (Write::Abandon, State::Uncertain)] {
        let mut ended = false;
        for polls in 0..POLLS_MAX {
            let ask = ask(rig, &format!("{write:?} {polls}"));
            let lease = acquire(&store, &ask).await;
            ended = cut(polls, write.send(rig, &store, &lease)).await.is_some();
            let after = record(&store, &ask.key.id).await.state();
            assert!(
                after == State::InProgress || after == after_it,
                "{write:?} after {polls} polls: {after}"
            );
            assert_eq!(write.send(rig, &store, &lease).await, Fenced::Applied);
            assert_eq!(record(&store, &ask.key.id).await.state(), after_it);
            if ended {
                break;
            }
        }
        assert!(ended, "{write:?} should end");
    }
}

/// D-07: a dropped settlement was applied or not.
pub async fn a_dropped_settlement_may_be_repeated(rig: &impl Rig) {
    let store = Faulty::new(rig.store());
    let recorded = outcome("found in the books");
    for polls in 0..POLLS_MAX {
        let ask = ask(rig, &format!("settle {polls}"));
        let lease = acquire(&store, &ask).await;
        store.abandon(&lease, Reason::Declared).await.expect("abandon answers");
        let verdict = Verdict::Applied { recorded: recorded.clone(), retention: retention(rig) };
        let settlement = settlement(lease.fence.nonce, verdict);
        let ended = cut(polls, store.settle(&ask.key.id, &settlement)).await.is_some();
        let after = record(&store, &ask.key.id).await;
        match after.state() {
            State::Uncertain => assert_eq!(after.fence, lease.fence),
            State::Completed => assert_eq!(after.recorded(), Some(&recorded)),
            other => panic!("the record is in state {other} after {polls} polls"),
        }
        let again = store.settle(&ask.key.id, &settlement).await.expect("settle answers");
        assert_eq!(again, Settled::Applied, "after {polls} polls");
        assert_replays(&claim(&store, &retry(&ask)).await, &recorded);
        if ended {
            return;
        }
    }
    panic!("a settlement should end");
}

/// D-07: a dropped deletion removed the record or left it whole.
pub async fn a_dropped_deletion_may_be_repeated(rig: &impl Rig) {
    let store = Faulty::new(rig.store());
    for polls in 0..POLLS_MAX {
        let ask = ask(rig, &format!("delete {polls}"));
        let lease = acquire(&store, &ask).await;
        complete(rig, &store, &lease, &outcome("done")).await;
        let before = record(&store, &ask.key.id).await;
        let ended = cut(polls, store.delete(&ask.key.id, lease.fence.nonce)).await.is_some();
        let left = found(&store, &ask.key.id).await;
        assert!(left.is_none() || left == Some(before), "after {polls} polls");
        let again = store.delete(&ask.key.id, lease.fence.nonce).await.expect("delete answers");
        assert!(matches!(again, Deleted::Applied | Deleted::Absent), "after {polls} polls: {again:?}");
        assert_eq!(found(&store, &ask.key.id).await, None);
        if ended {
            return;
        }
    }
    panic!("a deletion should end");
}

/// A dropped sweep removed some of the due records, and later ones remove the rest: a server may still run the
/// dropped one, and a sweep skips records that are locked.
pub async fn a_dropped_sweep_may_be_repeated(rig: &impl Rig) {
    let store = Faulty::new(rig.store());
    for polls in 0..POLLS_MAX {
        let due = ask(rig, &format!("due {polls}"));
        let lease = acquire(&store, &due).await;
        complete(rig, &store, &lease, &outcome("done")).await;
        rig.advance(retention(rig)).await;
        let kept = ask(rig, &format!("kept {polls}"));
        acquire(&store, &kept).await;
        let ended = cut(polls, store.sweep(100)).await.is_some();
        assert_eq!(state(&store, &kept.key.id).await, Some(State::InProgress), "after {polls} polls");
        let mut sweeps = 0;
        while found(&store, &due.key.id).await.is_some() {
            assert!(sweeps < SWEEPS_MAX, "after {polls} polls");
            store.sweep(100).await.expect("sweep answers");
            sweeps += 1;
        }
        if ended {
            assert_eq!(store.sweep(100).await.expect("sweep answers"), Swept::default());
            return;
        }
    }
    panic!("a sweep should end");
}

/// Dropped calls hold no resources: after many of them, of every kind, the store serves as before.
pub async fn dropped_calls_hold_no_resources(rig: &impl Rig) {
    let store = rig.store();
    let first = ask(rig, "harmed");
    let lease = acquire(&*store, &first).await;
    for _ in 0..100 {
        cut(1, store.claim(&retry(&first))).await;
        cut(1, store.renew(&lease)).await;
        cut(1, store.complete(&lease_of(&retry(&first), 1), &outcome("strange"), retention(rig))).await;
        cut(1, store.get(&first.key.id)).await;
        cut(1, store.delete(&first.key.id, Nonce::random())).await;
        cut(1, store.sweep(100)).await;
        cut(1, store.stats()).await;
    }
    let done = outcome("done");
    assert_eq!(complete(rig, &*store, &lease, &done).await, Fenced::Applied);
    assert_replays(&claim(&*store, &retry(&first)).await, &done);
    acquire(&*store, &ask(rig, "another")).await;
}

/// Polls `call` at most `polls` times, then drops it. Returns its answer if it had one by then.
async fn cut<T>(polls: usize, call: impl Future<Output = T>) -> Option<T> {
    if polls == 0 {
        return None;
    }
    let mut call = pin!(call);
    let mut left = polls;
    poll_fn(|cx| {
        left -= 1;
        match call.as_mut().poll(cx) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
