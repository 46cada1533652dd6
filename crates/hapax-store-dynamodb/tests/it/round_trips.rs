//! Round trips: how many calls an operation takes, and which calls are retried.

use std::time::{Duration, SystemTime};

use hapax_core::{Claim, Fenced, Store, StoreErrorKind};
use hapax_testkit::servers::DynamoDbServer;

use crate::fixture::{RETENTION, acquire, ask, done, finish, replayed};
use crate::proxy::{Fate, Proxy};

const BUSY: Fate = Fate::Answer(400, r#"{"__type": "com.amazon.coral.availability#ThrottlingException"}"#);
const BROKEN: Fate =
    Fate::Answer(500, r#"{"__type": "com.amazonaws.dynamodb.v20120810#InternalServerError"}"#);

#[tokio::test]
async fn a_fresh_operation_takes_two_calls_and_everything_else_one() {
    let server = DynamoDbServer::start();
    let proxy = Proxy::start(&server).await;
    let options = proxy.options("counted");
    options.make().await.unwrap();
    let store = options.clone().connect().await.unwrap();
    proxy.calls();
    for number in 0..10 {
        finish(&store, &format!("fresh {number}"), "done").await;
        assert_eq!(proxy.calls(), ["PutItem", "PutItem"], "claim and completion");
        assert_eq!(replayed(&store, &format!("fresh {number}")).await, done("done"));
        assert_eq!(proxy.calls(), ["PutItem"], "a replay");
    }
    let lease = acquire(&store, "busy").await;
    proxy.calls();
    assert!(matches!(store.claim(&ask("busy")).await.unwrap(), Claim::Busy { .. }));
    assert_eq!(proxy.calls(), ["PutItem"], "a busy key");
    assert_eq!(store.renew(&lease).await.unwrap(), Fenced::Applied);
    assert_eq!(proxy.calls(), ["PutItem"], "a renewal");
    assert_eq!(store.release(&lease, None).await.unwrap(), Fenced::Applied);
    assert_eq!(proxy.calls(), ["PutItem"], "a release");

    // A process that has not written the claim must read it before completing it.
    let other = options.connect().await.unwrap();
    let lease = acquire(&store, "elsewhere").await;
    proxy.calls();
    assert_eq!(other.complete(&lease, &done("done"), RETENTION).await.unwrap(), Fenced::Applied);
    assert_eq!(proxy.calls(), ["GetItem", "PutItem"]);
}

#[tokio::test]
async fn only_calls_that_did_nothing_are_retried() {
    let server = DynamoDbServer::start();
    let proxy = Proxy::start(&server).await;
    let options = proxy.options("lost");
    options.make().await.unwrap();
    let store = options.clone().connect().await.unwrap();
    proxy.calls();

    // A busy service refuses before it executes anything.
    proxy.next([BUSY, BUSY]);
    let lease = acquire(&store, "busy").await;
    assert_eq!((proxy.calls().len(), lease.fence.attempt), (3, 1));

    // A service that refuses the signature's time returns its own, and gets one retry with that.
    let hour = Duration::from_secs(3600);
    proxy.next([Fate::Disbelieve(SystemTime::now() + hour)]);
    let lease = acquire(&store, "corrected").await;
    assert_eq!((proxy.calls().len(), lease.fence.attempt), (2, 1));
    proxy.next([Fate::Disbelieve(SystemTime::now() + hour), Fate::Disbelieve(SystemTime::now() + hour)]);
    assert_eq!(store.claim(&ask("refused")).await.unwrap_err().kind(), StoreErrorKind::Unavailable);
    assert!(proxy.calls().len() <= 2);
    proxy.forget();

    // A service that stays busy is unavailable when the timeout ends, and nothing was claimed.
    let hasty = options.timeout(Duration::from_millis(300)).connect().await.unwrap();
    proxy.next(vec![BUSY; 100]);
    assert_eq!(hasty.claim(&ask("never")).await.unwrap_err().kind(), StoreErrorKind::Unavailable);
    proxy.forget();
    acquire(&store, "never").await;
    proxy.calls();

    // A call that may have been applied is not retried: the caller repeats it with the same nonce.
    for fate in [Fate::LoseAnswer, BROKEN] {
        let claim = ask(&format!("{fate:?}"));
        proxy.next([fate]);
        assert_eq!(store.claim(&claim).await.unwrap_err().kind(), StoreErrorKind::Unknown);
        assert_eq!(proxy.calls(), ["PutItem"]);
        let Claim::Acquired(lease) = store.claim(&claim).await.unwrap() else {
            panic!("the nonce is its own")
        };
        assert_eq!(lease.fence.attempt, 1);
        proxy.next([Fate::LoseAnswer]);
        let lost = store.complete(&lease, &done("once"), RETENTION).await.unwrap_err();
        assert_eq!(lost.kind(), StoreErrorKind::Unknown);
        assert_eq!(store.complete(&lease, &done("once"), RETENTION).await.unwrap(), Fenced::Applied);
        // The record is as the lost write left it.
        assert!(
            matches!(store.claim(&claim).await.unwrap(), Claim::Replay { recorded, .. } if recorded == done("once"))
        );
        proxy.calls();
    }
}
