//! Faults are injected where the plan says, have their effect, and are counted.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use hapax_core::{
    Claim, ClaimRequest, Fingerprint, Key, Lookup, ManualClock, Nonce, OnLapse, Scope, ScopedKey, Store,
    StoreErrorKind,
};
use hapax_testkit::{Fault, Faulty, Fired, Op, Plan, Point, ReferenceStore};
use parking_lot::Mutex;

fn ask() -> ClaimRequest {
    ClaimRequest {
        key: ScopedKey::new(Scope::new("faulty"), &Key::random()),
        fingerprint: Fingerprint::empty(),
        nonce: Nonce::random(),
        lease: Duration::from_secs(30),
        on_lapse: OnLapse::Uncertain,
        attempts_max: 1,
        uncertain_retention: Duration::from_secs(3600),
    }
}

/// A store through [`Faulty`], and the same store directly.
fn stores() -> (Faulty, Arc<dyn Store>) {
    let store = Arc::new(ReferenceStore::new(ManualClock::new()));
    (Faulty::new(store.clone()), store)
}

async fn is_stored(store: &dyn Store, ask: &ClaimRequest) -> bool {
    store.get(&ask.key.id).await.expect("get answers") != Lookup::Absent
}

fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn without_a_plan_no_fault_is_injected() {
    let (faulty, _) = stores();
    assert!(matches!(faulty.claim(&ask()).await, Ok(Claim::Acquired(_))));
    assert_eq!((faulty.calls(), faulty.fired()), (1, vec![]));
}

#[tokio::test]
async fn a_call_suspends_before_and_after_it_is_applied() {
    let (faulty, store) = stores();
    let ask = ask();
    let mut call = pin!(faulty.claim(&ask));
    assert!(poll_once(call.as_mut()).is_pending());
    assert!(!is_stored(&*store, &ask).await, "suspended before");
    assert!(poll_once(call.as_mut()).is_pending());
    assert!(is_stored(&*store, &ask).await, "suspended after");
    assert!(poll_once(call.as_mut()).is_ready());
}

#[tokio::test]
async fn an_error_before_applies_nothing() {
    let (faulty, store) = stores();
    faulty.set_plan(Plan::new().at(1, Fault::ErrorBefore(StoreErrorKind::Full)));
    let ask = ask();
    assert_eq!(faulty.claim(&ask).await.unwrap_err().kind(), StoreErrorKind::Full);
    assert!(!is_stored(&*store, &ask).await);
}

#[tokio::test]
async fn a_lost_answer_was_applied() {
    let (faulty, store) = stores();
    faulty.set_plan(Plan::new().at(1, Fault::AnswerLost));
    let ask = ask();
    assert!(faulty.claim(&ask).await.unwrap_err().is_unknown());
    assert!(is_stored(&*store, &ask).await);
}

#[tokio::test(start_paused = true)]
async fn a_delay_sleeps_on_tokios_clock() {
    for (point, applied) in [(Point::Before, false), (Point::After, true)] {
        let (faulty, store) = stores();
        let span = Duration::from_secs(90);
        faulty.set_plan(Plan::new().at(1, Fault::Delay(point, span)));
        let ask = ask();
        let started = tokio::time::Instant::now();
        let watched = async {
            tokio::time::sleep(span / 2).await;
            is_stored(&*store, &ask).await
        };
        let (answer, seen) = tokio::join!(faulty.claim(&ask), watched);
        assert!(matches!(answer, Ok(Claim::Acquired(_))));
        assert_eq!((seen, started.elapsed()), (applied, span), "{point:?}");
    }
}

#[tokio::test]
async fn a_stall_lasts_until_resumed() {
    for (point, applied) in [(Point::Before, false), (Point::After, true)] {
        let (faulty, store) = stores();
        faulty.set_plan(Plan::new().at(1, Fault::Stall(point)));
        let ask = ask();
        let mut call = pin!(faulty.claim(&ask));
        for _ in 0..10 {
            assert!(poll_once(call.as_mut()).is_pending());
        }
        assert_eq!(is_stored(&*store, &ask).await, applied, "{point:?}");
        faulty.resume();
        assert!(matches!(call.await, Ok(Claim::Acquired(_))));
    }
}

#[tokio::test]
async fn a_panic_is_injected_before_or_after_the_call() {
    for (point, applied) in [(Point::Before, false), (Point::After, true)] {
        let (faulty, store) = stores();
        faulty.set_plan(Plan::new().at(1, Fault::Panic(point)));
        let ask = ask();
        let (with, asked) = (faulty.clone(), ask.clone());
        let ended = tokio::spawn(async move { with.claim(&asked).await }).await;
        assert!(ended.unwrap_err().is_panic());
        assert_eq!(is_stored(&*store, &ask).await, applied, "{point:?}");
        assert_eq!(faulty.fired(), [Fired { call: 1, op: Op::Claim, fault: Fault::Panic(point) }]);
    }
}

#[tokio::test]
async fn a_driven_caller_is_dropped_at_the_planned_point() {
    for (point, applied) in [(Point::Before, false), (Point::After, true)] {
        let (faulty, store) = stores();
        faulty.set_plan(Plan::new().at(2, Fault::Drop(point)));
        let (first, second) = (ask(), ask());
        let driven = faulty.drive(async {
            faulty.claim(&first).await.unwrap();
            faulty.claim(&second).await.unwrap();
        });
        assert_eq!(driven.await, None);
        assert!(is_stored(&*store, &first).await);
        assert_eq!(is_stored(&*store, &second).await, applied, "{point:?}");
    }
}

#[tokio::test]
async fn a_call_in_its_own_task_outlives_the_dropped_caller() {
    let (faulty, _) = stores();
    faulty.set_plan(Plan::new().at(1, Fault::Drop(Point::Before)));
    let with = faulty.clone();
    let task = tokio::spawn(async move { with.claim(&ask()).await });
    assert_eq!(faulty.drive(std::future::pending::<()>()).await, None);
    assert!(matches!(task.await.unwrap(), Ok(Claim::Acquired(_))));
}

#[tokio::test]
async fn a_caller_without_a_drop_fault_runs_to_its_end() {
    let (faulty, _) = stores();
    assert!(faulty.drive(faulty.stats()).await.is_some_and(|answer| answer.is_ok()));
}

#[tokio::test]
async fn after_a_crash_nothing_answers_and_nothing_is_applied() {
    for (point, applied) in [(Point::Before, false), (Point::After, true)] {
        let (faulty, store) = stores();
        faulty.set_plan(Plan::new().at(2, Fault::Crash(point)));
        // This call was in flight when the process died.
        let on_its_way = ask();
        let mut early = pin!(faulty.claim(&on_its_way));
        assert!(poll_once(early.as_mut()).is_pending());
        let (fatal, later) = (ask(), ask());
        {
            let mut call = pin!(faulty.claim(&fatal));
            for _ in 0..10 {
                assert!(poll_once(call.as_mut()).is_pending());
            }
        }
        faulty.crashed().await;
        let mut late = pin!(faulty.claim(&later));
        for _ in 0..10 {
            assert!(poll_once(early.as_mut()).is_pending());
            assert!(poll_once(late.as_mut()).is_pending());
        }
        assert_eq!(is_stored(&*store, &fatal).await, applied, "{point:?}");
        assert!(!is_stored(&*store, &on_its_way).await);
        assert!(!is_stored(&*store, &later).await);
    }
}

#[tokio::test]
async fn calls_are_counted_by_operation_and_from_the_plan_on() {
    let (faulty, _) = stores();
    faulty.stats().await.unwrap();
    faulty.set_plan(Plan::new().at_nth(Op::Stats, 2, Fault::AnswerLost).at(4, Fault::AnswerLost));
    let mut lost = Vec::new();
    for call in 1..=5 {
        let answer = if call == 2 { faulty.health().await.err() } else { faulty.stats().await.err() };
        if answer.is_some() {
            lost.push(call);
        }
    }
    assert_eq!(lost, [3, 4]);
    assert_eq!(faulty.calls(), 5);
    assert_eq!(faulty.fired().iter().map(|fired| fired.call).collect::<Vec<_>>(), [3, 4]);
}

#[tokio::test]
async fn a_fault_of_every_call_lasts_until_the_next_plan() {
    let (faulty, _) = stores();
    faulty.set_plan(Plan::new().always(Op::Stats, Fault::ErrorBefore(StoreErrorKind::Unavailable)));
    for _ in 0..3 {
        assert!(faulty.stats().await.is_err());
        assert!(faulty.health().await.is_ok());
    }
    assert_eq!(faulty.fired().len(), 3);
    faulty.set_plan(Plan::new());
    assert!(faulty.stats().await.is_ok());
}

#[tokio::test]
async fn the_same_seed_injects_the_same_faults() {
    let outcomes = |seed| async move {
        let (faulty, _) = stores();
        faulty.set_plan(Plan::new().by_chance(seed, 300, &[Op::Stats], &[Fault::AnswerLost]));
        let mut outcomes = Vec::new();
        for _ in 0..200 {
            assert!(faulty.health().await.is_ok(), "only the named operations fail");
            outcomes.push(faulty.stats().await.is_ok());
        }
        outcomes
    };
    let first = outcomes(1).await;
    assert_eq!(first, outcomes(1).await);
    assert_ne!(first, outcomes(2).await);
    let failed = first.iter().filter(|ok| !**ok).count();
    assert!((30..=90).contains(&failed), "about 60 of 200, not {failed}");
}

#[tokio::test]
async fn an_observer_sees_both_points_of_every_call() {
    let (faulty, _) = stores();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let notes = seen.clone();
    faulty.observe(move |step| notes.lock().push((step.call, step.op, step.point, step.fault)));
    faulty.set_plan(Plan::new().at(2, Fault::AnswerLost));
    let ask = ask();
    faulty.claim(&ask).await.unwrap();
    faulty.get(&ask.key.id).await.unwrap_err();
    assert_eq!(
        *seen.lock(),
        [
            (1, Op::Claim, Point::Before, None),
            (1, Op::Claim, Point::After, None),
            (2, Op::Get, Point::Before, None),
            (2, Op::Get, Point::After, Some(Fault::AnswerLost)),
        ]
    );
}

#[test]
fn every_kind_of_fault_is_listed_once_per_point() {
    let faults = Fault::each(Duration::from_secs(60));
    let mut named: Vec<(&str, Point)> = faults.iter().map(|fault| (fault.name(), fault.point())).collect();
    named.sort_unstable();
    named.dedup();
    assert_eq!((faults.len(), named.len()), (10, 10));
}
