//! Work that runs once in its caller's transaction: what is committed together, and what remains after a rollback.

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use hapax::{Fail, Hapax, OnceError};
use hapax_core::{Claim, Reason, Store, StoreErrorKind};
use hapax_store_postgres::OnceInError;
use tokio::sync::oneshot;

use crate::counting::Counting;
use crate::fixture::{RETENTION, acquire, ask, done, replayed};
use crate::shop::{Shop, client, key};

#[tokio::test]
async fn x_12_effect_and_outcome_are_committed_together() {
    let shop = Shop::open().await;
    let first = shop.order_and_commit("a").await;
    assert!(!first.replayed);
    let again = shop.order_and_commit("a").await;
    assert_eq!((again.value, again.replayed), (first.value, true));
    assert_eq!(shop.effects("a"), 1);
    // Outside the transaction it is a record like any other.
    assert_eq!(replayed(&shop.store, "a").await, done(&first.value.to_string()));
    assert_eq!(shop.store.stats().await.unwrap().completed, 1);

    let mut client = shop.client().await;
    let mut tx = client.transaction().await.unwrap();
    let other = shop.once(&mut tx, "a").input("another").run(async |_| Ok::<i64, Infallible>(0)).await;
    assert!(matches!(other, Err(OnceInError::Mismatch)), "{other:?}");
}

#[tokio::test]
async fn a_rollback_leaves_nothing() {
    let shop = Shop::open().await;
    let mut client = shop.client().await;
    let mut tx = client.transaction().await.unwrap();
    shop.order(&mut tx, "a").await.unwrap();
    // Inside the transaction it has happened.
    assert!(shop.order(&mut tx, "a").await.unwrap().replayed);
    tx.rollback().await.unwrap();
    assert!(shop.knows_nothing_of("a").await);
    assert!(!shop.order_and_commit("a").await.replayed);
}

#[tokio::test]
async fn failed_or_dropped_work_leaves_the_transaction_as_it_was() {
    let shop = Shop::open().await;
    let mut client = shop.client().await;
    let mut tx = client.transaction().await.unwrap();
    tx.execute(&shop.effect("before"), &[]).await.unwrap();

    let effect = shop.effect("failed");
    let failed = shop.once(&mut tx, "failed").run(async |tx| {
        tx.execute(&effect, &[]).await.unwrap();
        tx.execute("SELECT 1 / 0", &[]).await
    });
    assert!(matches!(failed.await, Err(OnceInError::Failed(_))));

    let effect = shop.effect("dropped");
    let (at_work, is_at_work) = oneshot::channel();
    let dropped = shop.once(&mut tx, "dropped").run(async |tx| {
        tx.execute(&effect, &[]).await.unwrap();
        at_work.send(()).unwrap();
        pending::<Result<(), ()>>().await
    });
    tokio::select! {
        never = dropped => panic!("it ended: {never:?}"),
        reached = is_at_work => reached.unwrap(),
    }

    let large = "x".repeat(hapax_store_postgres::OUTCOME_BYTES_MAX_DEFAULT);
    let refused = shop.once(&mut tx, "large").run(async |_| Ok::<_, Infallible>(large)).await;
    let Err(OnceInError::Store(error)) = refused else { panic!("it was taken: {refused:?}") };
    assert_eq!(error.kind(), StoreErrorKind::TooLarge);

    assert!(!shop.order(&mut tx, "after").await.unwrap().replayed);
    tx.commit().await.unwrap();
    for (name, count) in [("before", 1), ("failed", 0), ("dropped", 0), ("after", 1)] {
        assert_eq!(shop.effects(name), count, "{name}");
    }
    for name in ["failed", "dropped", "large"] {
        assert!(shop.knows_nothing_of(name).await, "{name}");
    }
}

#[tokio::test]
async fn work_that_ends_the_transaction_is_an_error() {
    let shop = Shop::open().await;
    let mut client = shop.client().await;
    for (end, happened) in [("COMMIT", true), ("ROLLBACK", false), ("ROLLBACK; BEGIN", false)] {
        let name = key(&end.replace([';', ' '], "-"));
        let effect = shop.effect(name.as_str());
        let mut tx = client.transaction().await.unwrap();
        let ended = shop.once(&mut tx, name.as_str()).run(async |tx| {
            let number = tx.query_one(&effect, &[]).await?.try_get::<_, i64>(0);
            tx.batch_execute(end).await?;
            number
        });
        let ended = ended.await;
        assert!(matches!(ended, Err(OnceInError::Ended { .. } | OnceInError::Store(_))), "{end}: {ended:?}");
        tx.rollback().await.unwrap();
        assert_eq!(shop.order_and_commit(name.as_str()).await.replayed, happened, "{end}");
        assert_eq!(shop.effects(name.as_str()), 1, "{end}");
    }
}

#[tokio::test]
async fn records_of_the_ordinary_mode_are_respected() {
    let shop = Shop::open().await;
    let store = &shop.store;
    let mut client = shop.client().await;
    let mut tx = client.transaction().await.unwrap();

    acquire(store, "running").await;
    let running = shop.order(&mut tx, "running").await;
    assert!(matches!(running, Err(OnceInError::InProgress { .. })), "{running:?}");

    let unknown = acquire(store, "unknown").await;
    store.abandon(&unknown, Reason::Declared).await.unwrap();
    let unknown = shop.order(&mut tx, "unknown").await;
    assert!(matches!(unknown, Err(OnceInError::Uncertain { reason: Reason::Declared, .. })), "{unknown:?}");

    let released = acquire(store, "released").await;
    store.release(&released, None).await.unwrap();
    assert!(!shop.order(&mut tx, "released").await.unwrap().replayed);

    let text = acquire(store, "text").await;
    store.complete(&text, &done("no number"), RETENTION).await.unwrap();
    let text = shop.order(&mut tx, "text").await;
    assert!(matches!(text, Err(OnceInError::ResultUnavailable { source: Some(_) })), "{text:?}");
    tx.commit().await.unwrap();
    assert_eq!(shop.effects("released"), 1);
}

#[tokio::test]
async fn each_mode_replays_results_of_the_other() {
    let shop = Shop::open().await;
    let hapax = Hapax::builder(shop.options().connect().await.unwrap()).build();
    let mut client = shop.client().await;
    let mut tx = client.transaction().await.unwrap();

    hapax.once("pay", "ordinary").input(&("a", 1)).run(async |_| Ok::<_, Infallible>(7)).await.unwrap();
    let run = shop.store.once_in(&mut tx, "pay", &key("ordinary")).input(&("a", 1));
    let known = run.run(async |_| Ok::<_, Infallible>(8)).await.unwrap();
    assert_eq!((known.value, known.replayed), (7, true));

    let refused = hapax.once("pay", "refused").run(async |_| Err::<(), _>(Fail::permanent("no")));
    assert!(matches!(refused.await, Err(OnceError::Failed("no"))));
    let run = shop.store.once_in(&mut tx, "pay", &key("refused"));
    let known = run.run(async |_| Ok::<_, Infallible>(8)).await;
    assert!(matches!(known, Err(OnceInError::PreviouslyFailed { .. })), "{known:?}");

    let run = shop.store.once_in(&mut tx, "pay", &key("transactional")).input(&("a", 1));
    run.run(async |_| Ok::<_, Infallible>(9)).await.unwrap();
    tx.commit().await.unwrap();
    let known = hapax.once("pay", "transactional").input(&("a", 1));
    let known = known.run(async |_| Ok::<_, Infallible>(10)).await.unwrap();
    assert_eq!((known.value, known.replayed), (9, true));
}

#[tokio::test]
async fn an_open_claim_is_busy_to_the_ordinary_mode() {
    let shop = Shop::open().await;
    let hasty = shop.options().timeout(Duration::from_secs(8)).connect().await.unwrap();
    let mut client = shop.client().await;
    let mut tx = client.transaction().await.unwrap();
    shop.order(&mut tx, "a").await.unwrap();
    assert!(matches!(hasty.claim(&ask("a")).await.unwrap(), Claim::Busy { .. }));
    tx.commit().await.unwrap();
    assert!(matches!(hasty.claim(&ask("a")).await.unwrap(), Claim::Replay { .. }));
}

#[tokio::test]
async fn a_commit_with_a_lost_reply_is_resolved_by_repeating_the_transaction() {
    let shop = Shop::open().await;
    let between = Counting::before(shop.server.port());
    let mut lossy = client(between.url().trim_end_matches("?listen=off")).await;
    let mut tx = lossy.transaction().await.unwrap();
    let first = shop.order(&mut tx, "a").await.unwrap();
    between.lose(1);
    tx.commit().await.unwrap_err();
    assert_eq!(between.left_to_lose(), 0);
    let again = shop.order_and_commit("a").await;
    assert_eq!((again.value, again.replayed, shop.effects("a")), (first.value, true, 1));
}

#[tokio::test]
async fn retention_counts_from_the_completion() {
    let shop = Shop::open().await;
    let mut client = shop.client().await;
    let mut tx = client.transaction().await.unwrap();
    let run = shop.once(&mut tx, "a").retention(Duration::from_secs(600));
    run.run(async |_| Ok::<_, Infallible>(())).await.unwrap();
    tx.commit().await.unwrap();
    let spans = format!("SELECT expires_at - updated_at FROM {}.record", shop.schema);
    assert_eq!(shop.server.sql(&spans), "600000");
}
