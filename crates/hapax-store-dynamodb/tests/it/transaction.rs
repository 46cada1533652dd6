//! Transactional mode: the outcome and the caller's items, together or not at all.

use std::error::Error;

use hapax_core::{Claim, ClaimRequest, Fenced, OnLapse, Store, StoreErrorKind};
use hapax_store_dynamodb::{Declined, Writes};
use hapax_testkit::servers::DynamoDbServer;
use serde_json::json;

use crate::effects::{one_more, runs};
use crate::fixture::{LEASE, RETENTION, acquire, ask, clock, connect, done, options, replayed};
use crate::proxy::{Fate, Proxy};

#[tokio::test]
async fn the_effect_happens_once_with_its_outcome() {
    let server = DynamoDbServer::start();
    connect(&server, "effects").await;
    let proxy = Proxy::start(&server).await;
    let clock = clock();
    proxy.options("records").make().await.unwrap();
    let store = proxy.options("records").clock(clock.clone()).connect().await.unwrap();

    let lease = acquire(&store, "plain").await;
    proxy.calls();
    let applied = store.complete_with(&lease, &done("done"), RETENTION, &one_more("plain")).await;
    assert_eq!(applied.unwrap(), Fenced::Applied);
    assert_eq!(proxy.calls(), ["TransactWriteItems"]);
    assert_eq!((runs(&server, "plain"), replayed(&store, "plain").await), (1, done("done")));

    // The reply is lost: the record shows that it happened.
    let lease = acquire(&store, "lost").await;
    proxy.next([Fate::LoseAnswer]);
    let lost = store.complete_with(&lease, &done("done"), RETENTION, &one_more("lost")).await;
    assert_eq!(lost.unwrap_err().kind(), StoreErrorKind::Unknown);
    let again = store.complete_with(&lease, &done("done"), RETENTION, &one_more("lost")).await;
    assert_eq!((again.unwrap(), runs(&server, "lost")), (Fenced::Applied, 1));

    // Another attempt took the claim over: the first one's writes do not happen.
    let first = acquire(&store, "taken over").await;
    clock.advance(LEASE);
    let ask = ClaimRequest { on_lapse: OnLapse::Rerun, ..ask("taken over") };
    let Claim::Acquired(second) = store.claim(&ask).await.unwrap() else { panic!("it lapsed") };
    for (lease, answer) in [(&first, Fenced::Lost), (&second, Fenced::Applied), (&first, Fenced::Lost)] {
        let answered = store.complete_with(lease, &done("done"), RETENTION, &one_more("taken over")).await;
        assert_eq!(answered.unwrap(), answer);
    }
    assert_eq!(runs(&server, "taken over"), 1);
}

/// The caller's own condition does not hold, and the record's condition was not evaluated because of a conflict.
const BUSY_AND_DECLINED: Fate = Fate::Answer(
    400,
    r#"{"__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
        "CancellationReasons": [{"Code": "TransactionConflict"}, {"Code": "ConditionalCheckFailed"}]}"#,
);

#[tokio::test]
async fn a_repeated_completion_that_was_applied_is_not_declined() {
    let server = DynamoDbServer::start();
    connect(&server, "effects").await;
    let proxy = Proxy::start(&server).await;
    proxy.options("records").make().await.unwrap();
    let store = proxy.options("records").connect().await.unwrap();
    let lease = acquire(&store, "order").await;
    let complete = async || store.complete_with(&lease, &done("done"), RETENTION, &one_more("order")).await;

    // Nothing was applied: it is the caller's condition indeed.
    proxy.next([BUSY_AND_DECLINED]);
    let error = complete().await.unwrap_err();
    assert_eq!(error.source().unwrap().downcast_ref(), Some(&Declined { item: 0 }));

    proxy.next([Fate::LoseAnswer, BUSY_AND_DECLINED]);
    assert_eq!(complete().await.unwrap_err().kind(), StoreErrorKind::Unknown);
    assert_eq!((complete().await.unwrap(), runs(&server, "order")), (Fenced::Applied, 1));
}

#[tokio::test]
async fn a_failed_condition_leaves_everything_unchanged() {
    let server = DynamoDbServer::start();
    connect(&server, "effects").await;
    let store = connect(&server, "records").await;
    let lease = acquire(&store, "declined").await;
    let writes = one_more("declined").item(json!({"ConditionCheck": {
        "TableName": "effects",
        "Key": {"id": {"S": "stock"}},
        "ConditionExpression": "attribute_exists(id)",
    }}));
    let error = store.complete_with(&lease, &done("done"), RETENTION, &writes).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Invalid);
    assert_eq!(error.source().unwrap().downcast_ref(), Some(&Declined { item: 1 }));
    assert_eq!(runs(&server, "declined"), 0);
    assert_eq!(store.renew(&lease).await.unwrap(), Fenced::Applied, "the claim stands");

    let many = (0..100).fold(Writes::new(), |writes, number| {
        writes.put("effects", json!({"id": {"S": number.to_string()}}))
    });
    let error = store.complete_with(&lease, &done("done"), RETENTION, &many).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::TooLarge);
    assert!(matches!(
        options(&server, "records").connect().await.unwrap().claim(&ask("declined")).await.unwrap(),
        Claim::Busy { .. }
    ));
}
