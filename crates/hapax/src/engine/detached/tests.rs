use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::oneshot;

use super::*;

#[tokio::test]
async fn x_06_what_waits_goes_on_when_its_caller_drops_it() {
    let (go_on, may_go_on) = oneshot::channel();
    let (done, is_done) = oneshot::channel();
    let mut detached = Detached::new(async move {
        may_go_on.await.expect("the test sends");
        done.send("done").expect("the test waits");
    });
    assert!(futures_util::poll!(&mut detached).is_pending());
    drop(detached);
    go_on.send(()).expect("it waits in a task of its own");
    assert_eq!(is_done.await, Ok("done"));
}

#[tokio::test]
async fn what_was_never_polled_does_not_begin() {
    let begun = Arc::new(AtomicU32::new(0));
    let counter = begun.clone();
    let (ended, is_ended) = oneshot::channel::<()>();
    drop(Detached::new(async move {
        counter.fetch_add(1, Ordering::SeqCst);
        drop(ended);
    }));
    is_ended.await.expect_err("the future is gone");
    assert_eq!(begun.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn what_ended_is_not_run_again() {
    let runs = Arc::new(AtomicU32::new(0));
    let counter = runs.clone();
    let mut detached = Detached::new(async move {
        tokio::task::yield_now().await;
        counter.fetch_add(1, Ordering::SeqCst)
    });
    assert_eq!((&mut detached).await.ok(), Some(0));
    drop(detached);
    tokio::task::yield_now().await;
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_panic_is_an_answer() {
    let detached = Detached::new(async {
        tokio::task::yield_now().await;
        panic!("on purpose");
    });
    assert!(detached.await.is_err());
}
