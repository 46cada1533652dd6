use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hapax_core::{BoxFuture, StoreError, StoreErrorKind};

use super::Calls;
use crate::MemoryStore;

#[tokio::test]
async fn a_store_that_panics_before_it_has_a_future_to_give_has_not_answered() {
    let calls = Calls { store: Arc::new(MemoryStore::new()), timeout: Duration::from_secs(1) };
    let call = || -> BoxFuture<'static, Result<(), StoreError>> { panic!("a planned panic of a store") };
    for tries in [1, 2] {
        let answer = calls.insist("complete", calls.timeout, tries, call).await;
        assert_eq!(answer.map_err(|error| error.kind()), Err(StoreErrorKind::Unknown));
    }
}

fn calls() -> Calls {
    Calls { store: Arc::new(MemoryStore::new()), timeout: Duration::from_secs(1) }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_hangs_is_unknown_after_its_limit() {
    let started = tokio::time::Instant::now();
    let answer = calls().once("claim", Duration::from_secs(3), pending::<Result<(), _>>()).await;
    assert_eq!(answer.map_err(|error| error.kind()), Err(StoreErrorKind::Unknown));
    let took = started.elapsed();
    assert!(took >= Duration::from_secs(3) && took < Duration::from_secs(4), "{took:?}");
}

/// A call that wakes itself again and again never leaves its task idle, and uses up every turn.
#[tokio::test]
async fn a_call_that_uses_up_its_turns_is_unknown_after_its_limit() {
    let busy = async {
        loop {
            tokio::task::consume_budget().await;
        }
    };
    let answer: Result<(), StoreError> = calls().once("claim", Duration::from_millis(20), busy).await;
    assert_eq!(answer.map_err(|error| error.kind()), Err(StoreErrorKind::Unknown));
}

#[tokio::test]
async fn a_call_is_asked_once_before_it_is_woken() {
    let mut asked = 0;
    let never = poll_fn(|_| {
        asked += 1;
        Poll::<Result<(), StoreError>>::Pending
    });
    let answer = calls().once("claim", Duration::from_millis(20), never).await;
    assert!(answer.is_err());
    assert_eq!(asked, 2, "once at the beginning, and once when the time is over");
}
