//! Concurrent transactions on the same key, at every isolation level.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hapax_store_postgres::OnceInError;
use tokio_postgres::{Client, IsolationLevel, Transaction};

use crate::fixture::PATIENCE;
use crate::shop::Shop;

const LEVELS: [IsolationLevel; 3] =
    [IsolationLevel::ReadCommitted, IsolationLevel::RepeatableRead, IsolationLevel::Serializable];

async fn begin(client: &mut Client, level: IsolationLevel) -> Transaction<'_> {
    client.build_transaction().isolation_level(level).start().await.unwrap()
}

async fn lock_timeout(tx: &Transaction<'_>) -> String {
    tx.query_one("SHOW lock_timeout", &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_wait_times_out_and_leaves_the_transaction_as_it_was() {
    let shop = Shop::open().await;
    for (at, level) in LEVELS.into_iter().enumerate() {
        let name = format!("key-{at}");
        let (mut first, mut second) = (shop.client().await, shop.client().await);
        let mut first = begin(&mut first, level).await;
        shop.order(&mut first, &name).await.unwrap();

        let mut second = begin(&mut second, level).await;
        second.batch_execute("SET LOCAL lock_timeout = '7s'").await.unwrap();
        let waiting = shop.once(&mut second, &name).wait(Duration::from_millis(1));
        let waited = waiting.run(async |_| Ok::<i64, Infallible>(0)).await;
        assert!(matches!(waited, Err(OnceInError::InProgress { .. })), "{level:?}: {waited:?}");
        assert_eq!(lock_timeout(&second).await, "7s");

        let inside = shop.once(&mut second, &format!("other-{at}"));
        let inside = inside.run(async |tx| Ok::<_, Infallible>(lock_timeout(tx).await)).await.unwrap();
        assert_eq!((inside.value.as_str(), lock_timeout(&second).await.as_str()), ("7s", "7s"));
        second.commit().await.unwrap();
        first.commit().await.unwrap();
        assert_eq!(shop.effects(&name), 1);
    }
}

#[tokio::test]
async fn a_duplicate_waits_for_the_end_of_the_first() {
    let shop = Arc::new(Shop::open().await);
    let names = |level| ["commits", "rolls-back"].map(|end| (level, end));
    for (at, (level, end)) in LEVELS.into_iter().flat_map(names).enumerate() {
        let name = format!("{end}-{at}");
        let mut first = shop.client().await;
        let mut first = begin(&mut first, level).await;
        shop.order(&mut first, &name).await.unwrap();
        let second = tokio::spawn({
            let (shop, name) = (shop.clone(), name.clone());
            async move {
                let mut client = shop.client().await;
                let mut tx = begin(&mut client, level).await;
                let effect = shop.effect(&name);
                let waiting = shop.once(&mut tx, &name).wait(PATIENCE);
                let done =
                    waiting.run(async |tx| tx.query_one(&effect, &[]).await?.try_get::<_, i64>(0)).await;
                if done.is_ok() {
                    tx.commit().await.unwrap();
                }
                done.map(|done| done.replayed)
            }
        });
        shop.until_a_transaction_waits().await;
        if end == "commits" {
            first.commit().await.unwrap()
        } else {
            first.rollback().await.unwrap()
        }
        let second = second.await.unwrap();
        match (end, level) {
            ("rolls-back", _) => assert!(matches!(second, Ok(false)), "{level:?}: {second:?}"),
            (_, IsolationLevel::ReadCommitted) => assert!(matches!(second, Ok(true)), "{second:?}"),
            // Its snapshot is older than the transaction it waited for.
            _ => {
                let Err(error) = second else { panic!("{level:?}: {second:?}") };
                assert!(matches!(error, OnceInError::Conflict(_)) && error.is_transient(), "{error:?}");
                assert!(shop.order_and_commit(&name).await.replayed);
            }
        }
        assert_eq!(shop.effects(&name), 1, "{level:?} {end}");
    }
}

#[tokio::test]
async fn a_serialization_failure_records_nothing() {
    let shop = Shop::open().await;
    let (mut first, mut second) = (shop.client().await, shop.client().await);
    let mut first = begin(&mut first, IsolationLevel::Serializable).await;
    let mut second = begin(&mut second, IsolationLevel::Serializable).await;
    let count = format!("SELECT count(*) FROM {}.effect", shop.schema);
    for tx in [&first, &second] {
        tx.query_one(&count, &[]).await.unwrap();
    }
    shop.order(&mut first, "first").await.unwrap();
    shop.order(&mut second, "second").await.unwrap();
    first.commit().await.unwrap();
    let refused = second.commit().await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "40001");
    assert!(shop.knows_nothing_of("second").await);
    assert!(!shop.order_and_commit("second").await.replayed);
}

#[tokio::test]
async fn deadlocked_transactions_report_a_conflict() {
    let shop = Arc::new(Shop::open().await);
    let mut first = shop.client().await;
    let mut first = first.transaction().await.unwrap();
    shop.order(&mut first, "a").await.unwrap();
    let second = tokio::spawn({
        let shop = shop.clone();
        async move {
            let mut client = shop.client().await;
            let mut tx = client.transaction().await.unwrap();
            shop.order(&mut tx, "b").await.unwrap();
            let waiting = shop.once(&mut tx, "a").wait(PATIENCE);
            let ended = waiting.run(async |_| Ok::<i64, Infallible>(0)).await;
            tx.rollback().await.unwrap();
            ended.is_err_and(|error| matches!(error, OnceInError::Conflict(_)))
        }
    });
    shop.until_a_transaction_waits().await;
    let waiting = shop.once(&mut first, "b").wait(PATIENCE);
    let ended = waiting.run(async |_| Ok::<i64, Infallible>(0)).await;
    let is_first = ended.is_err_and(|error| matches!(error, OnceInError::Conflict(_)));
    first.rollback().await.unwrap();
    // The server aborts one of the two.
    assert!(is_first != second.await.unwrap());
}
