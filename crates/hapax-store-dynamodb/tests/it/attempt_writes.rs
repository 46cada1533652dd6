//! Writes that are collected for an attempt, and applied with its outcome.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hapax::{Context, Hapax, OnceError};
use hapax_core::{
    Claim, ClaimRequest, Class, Fenced, Format, Key, Lookup, OnLapse, Reason, Recorded, State, Store,
    StoreErrorKind,
};
use hapax_store_dynamodb::DynamoDbStore;
use hapax_testkit::operations::scoped;
use hapax_testkit::servers::DynamoDbServer;
use serde_json::json;

use crate::effects::{addition, runs};
use crate::fixture::{LEASE, RETENTION, acquire, ask, clock, connect, done, options, replayed};
use crate::proxy::{Fate, Proxy};

async fn state(store: &DynamoDbStore, name: &str) -> State {
    match store.get(&scoped(name).id).await.unwrap() {
        Lookup::Found { record, .. } => record.state(),
        other => panic!("{name}: {other:?}"),
    }
}

#[tokio::test]
async fn success_applies_the_writes_and_everything_else_drops_them() {
    let server = DynamoDbServer::start();
    connect(&server, "effects").await;
    let store = connect(&server, "records").await;

    let lease = acquire(&store, "success").await;
    // The same attempt gets the same list again.
    store.writes_of(lease.fence).unwrap().item(addition("success"));
    store.writes_of(lease.fence).unwrap().put("effects", json!({"id": {"S": "order"}, "runs": {"N": "7"}}));
    assert_eq!((runs(&server, "success"), runs(&server, "order")), (0, 0));
    for _ in 0..2 {
        assert_eq!(store.complete(&lease, &done("yes"), RETENTION).await.unwrap(), Fenced::Applied);
        assert_eq!((runs(&server, "success"), runs(&server, "order")), (1, 7));
    }
    assert_eq!(replayed(&store, "success").await, done("yes"));

    let error = Recorded::new(Class::Error, Format::FUNCTION, "no");
    let failed = acquire(&store, "error").await;
    store.writes_of(failed.fence).unwrap().item(addition("error"));
    assert_eq!(store.complete(&failed, &error, RETENTION).await.unwrap(), Fenced::Applied);
    let released = acquire(&store, "release").await;
    store.writes_of(released.fence).unwrap().item(addition("release"));
    assert_eq!(store.release(&released, None).await.unwrap(), Fenced::Applied);
    let abandoned = acquire(&store, "abandon").await;
    store.writes_of(abandoned.fence).unwrap().item(addition("abandon"));
    assert_eq!(store.abandon(&abandoned, Reason::Declared).await.unwrap(), Fenced::Applied);
    let ends = [("error", State::Failed), ("release", State::Released), ("abandon", State::Uncertain)];
    for (name, end) in ends {
        assert_eq!((runs(&server, name), state(&store, name).await), (0, end), "{name}");
    }
}

/// Another store value would not see the completion.
#[tokio::test]
async fn only_the_store_that_claimed_collects_and_only_until_the_end() {
    let server = DynamoDbServer::start();
    let store = connect(&server, "records").await;
    let other = options(&server, "records").connect().await.unwrap();
    let lease = acquire(&store, "elsewhere").await;
    assert_eq!(other.writes_of(lease.fence).unwrap_err().kind(), StoreErrorKind::Invalid);
    assert_eq!(store.complete(&lease, &done("yes"), RETENTION).await.unwrap(), Fenced::Applied);
    assert_eq!(store.writes_of(lease.fence).unwrap_err().kind(), StoreErrorKind::Invalid);
}

#[tokio::test]
async fn refused_writes_release_the_key() {
    let server = DynamoDbServer::start();
    connect(&server, "effects").await;
    let store = connect(&server, "records").await;

    let declined = acquire(&store, "declined").await;
    let missing = json!({"ConditionCheck": {
        "TableName": "effects",
        "Key": {"id": {"S": "stock"}},
        "ConditionExpression": "attribute_exists(id)",
    }});
    store.writes_of(declined.fence).unwrap().item(addition("declined")).item(missing);
    assert_eq!(store.complete(&declined, &done("yes"), RETENTION).await.unwrap(), Fenced::Lost);

    let malformed = acquire(&store, "malformed").await;
    let writes = store.writes_of(malformed.fence).unwrap();
    writes.item(addition("malformed")).put("effects", json!({"name": {"S": "without its key"}}));
    drop(writes);
    assert_eq!(store.complete(&malformed, &done("yes"), RETENTION).await.unwrap(), Fenced::Lost);

    let many = acquire(&store, "many").await;
    for number in 0..100 {
        let item = json!({"id": {"S": number.to_string()}});
        store.writes_of(many.fence).unwrap().item(addition("many")).put("effects", item);
    }
    assert_eq!(store.complete(&many, &done("yes"), RETENTION).await.unwrap(), Fenced::Lost);

    // A handle could add more while they are sent.
    let held = acquire(&store, "held").await;
    let handle = store.writes_of(held.fence).unwrap();
    handle.item(addition("held"));
    assert_eq!(store.complete(&held, &done("yes"), RETENTION).await.unwrap(), Fenced::Lost);
    drop(handle);

    for name in ["declined", "malformed", "many", "held"] {
        assert_eq!((runs(&server, name), state(&store, name).await), (0, State::Released), "{name}");
        assert_eq!(acquire(&store, name).await.fence.attempt, 2, "{name}");
    }
}

#[tokio::test]
async fn a_completion_whose_answer_is_lost_is_applied_once() {
    let server = DynamoDbServer::start();
    connect(&server, "effects").await;
    let proxy = Proxy::start(&server).await;
    proxy.options("records").make().await.unwrap();
    let store = proxy.options("records").connect().await.unwrap();
    let lease = acquire(&store, "lost").await;
    store.writes_of(lease.fence).unwrap().item(addition("lost"));
    proxy.calls();
    proxy.next([Fate::LoseAnswer]);
    let lost = store.complete(&lease, &done("yes"), RETENTION).await.unwrap_err();
    assert_eq!(lost.kind(), StoreErrorKind::Unknown);
    assert_eq!(store.complete(&lease, &done("yes"), RETENTION).await.unwrap(), Fenced::Applied);
    assert_eq!(proxy.calls()[0], "TransactWriteItems");
    assert_eq!((runs(&server, "lost"), replayed(&store, "lost").await), (1, done("yes")));

    // It is dropped in flight and repeated.
    let lease = acquire(&store, "dropped").await;
    store.writes_of(lease.fence).unwrap().item(addition("dropped"));
    {
        let outcome = done("yes");
        let mut completing = store.complete(&lease, &outcome, RETENTION);
        assert!(futures_util::poll!(&mut completing).is_pending());
    }
    assert_eq!(store.complete(&lease, &done("yes"), RETENTION).await.unwrap(), Fenced::Applied);
    assert_eq!(runs(&server, "dropped"), 1);
}

#[tokio::test]
async fn an_attempt_that_was_taken_over_applies_nothing() {
    let server = DynamoDbServer::start();
    connect(&server, "effects").await;
    let clock = clock();
    options(&server, "records").make().await.unwrap();
    let store = options(&server, "records").clock(clock.clone()).connect().await.unwrap();
    let first = acquire(&store, "taken over").await;
    store.writes_of(first.fence).unwrap().item(addition("taken over"));
    clock.advance(LEASE);
    let ask = ClaimRequest { on_lapse: OnLapse::Rerun, ..ask("taken over") };
    let Claim::Acquired(second) = store.claim(&ask).await.unwrap() else { panic!("it lapsed") };
    store.writes_of(second.fence).unwrap().item(addition("taken over"));
    for (lease, answer) in [(&first, Fenced::Lost), (&second, Fenced::Applied), (&first, Fenced::Lost)] {
        assert_eq!(store.complete(lease, &done("yes"), RETENTION).await.unwrap(), answer);
    }
    assert_eq!(runs(&server, "taken over"), 1);
}

/// Through the engine, as functions, handlers and consumers use it.
#[tokio::test]
async fn the_work_of_an_operation_collects_its_writes() {
    let server = DynamoDbServer::start();
    connect(&server, "effects").await;
    let store = Arc::new(connect(&server, "records").await);
    let hapax = Hapax::builder(store.clone()).build();
    let started = Arc::new(AtomicUsize::new(0));
    let order = async |name: &'static str, only_in_stock: bool| {
        let (store, started) = (store.clone(), started.clone());
        let work = move |cx: Context| async move {
            started.fetch_add(1, Ordering::SeqCst);
            let writes = store.writes_of(cx.fence()).unwrap();
            writes.item(addition(name));
            if only_in_stock {
                writes.item(json!({"ConditionCheck": {
                    "TableName": "effects",
                    "Key": {"id": {"S": "stock"}},
                    "ConditionExpression": "attribute_exists(id)",
                }}));
            }
            Ok::<_, String>(name.to_owned())
        };
        hapax.once("order", Key::new(name).unwrap()).run(work).await
    };
    let first = order("plain", false).await.unwrap();
    let second = order("plain", false).await.unwrap();
    assert_eq!((first.replayed, second.replayed, runs(&server, "plain")), (false, true, 1));

    // The result does not leave: what it says did not happen.
    let declined = order("scarce", true).await.unwrap_err();
    assert!(matches!(declined, OnceError::Superseded { .. }), "{declined:?}");
    assert_eq!(runs(&server, "scarce"), 0);
    server.call("PutItem", r#"{"TableName": "effects", "Item": {"id": {"S": "stock"}}}"#);
    assert!(!order("scarce", true).await.unwrap().replayed);
    assert_eq!((runs(&server, "scarce"), started.load(Ordering::SeqCst)), (1, 3));
}
