//! The same in transactions of sqlx.

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use hapax_store_postgres::{Done, OnceInError};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, PgPool, Postgres, Transaction};
use tokio::sync::oneshot;

use crate::shop::{Shop, key};

/// For tests that wait for no other transaction.
pub(crate) const SHORT: Duration = Duration::from_millis(1);

pub(crate) async fn pool(shop: &Shop) -> PgPool {
    // Named statements do not survive a pooler in transaction mode, and it does not support the setting.
    let options =
        shop.url.parse::<PgConnectOptions>().unwrap().statement_cache_capacity(0).extra_float_digits(None);
    PgPoolOptions::new().max_connections(2).connect_with(options).await.unwrap()
}

pub(crate) async fn order(
    shop: &Shop,
    tx: &mut Transaction<'_, Postgres>,
    name: &str,
    wait: Duration,
) -> Result<Done<i64>, OnceInError<sqlx::Error>> {
    let effect = shop.effect(name);
    let once = shop.store.once_in_sqlx(tx, "POST /orders", &key(name)).wait(wait);
    once.run(async |tx| sqlx::query_scalar(AssertSqlSafe(effect)).fetch_one(&mut **tx).await).await
}

#[tokio::test]
async fn effect_and_outcome_are_committed_together_through_sqlx() {
    let shop = Shop::open().await;
    let pool = pool(&shop).await;
    let mut tx = pool.begin().await.unwrap();
    let first = order(&shop, &mut tx, "a", SHORT).await.unwrap();
    tx.commit().await.unwrap();

    let mut tx = pool.begin().await.unwrap();
    let again = order(&shop, &mut tx, "a", SHORT).await.unwrap();
    assert_eq!((first.replayed, again.value, again.replayed), (false, first.value, true));
    // Results of one driver are replayed by the other.
    let native = shop.order_and_commit("a").await;
    assert_eq!((native.value, native.replayed, shop.effects("a")), (first.value, true, 1));

    let other = shop.store.once_in_sqlx(&mut tx, "POST /orders", &key("a")).input("another");
    let other = other.run(async |_| Ok::<i64, Infallible>(0)).await;
    assert!(matches!(other, Err(OnceInError::Mismatch)), "{other:?}");
}

#[tokio::test]
async fn failed_work_leaves_a_transaction_of_sqlx_as_it_was() {
    let shop = Shop::open().await;
    let pool = pool(&shop).await;
    let mut first = pool.begin().await.unwrap();
    order(&shop, &mut first, "held", SHORT).await.unwrap();

    let mut tx = pool.begin().await.unwrap();
    sqlx::query("SET LOCAL lock_timeout = '7s'").execute(&mut *tx).await.unwrap();
    let held = order(&shop, &mut tx, "held", SHORT).await;
    assert!(matches!(held, Err(OnceInError::InProgress { .. })), "{held:?}");
    let effect = shop.effect("failed");
    let failed = shop.store.once_in_sqlx(&mut tx, "POST /orders", &key("failed")).run(async |tx| {
        sqlx::query(AssertSqlSafe(effect)).execute(&mut **tx).await.unwrap();
        sqlx::query_scalar::<_, i64>("SELECT 1 / 0").fetch_one(&mut **tx).await
    });
    assert!(matches!(failed.await, Err(OnceInError::Failed(_))));
    let (at_work, is_at_work) = oneshot::channel();
    let dropped = shop.store.once_in_sqlx(&mut tx, "POST /orders", &key("dropped")).run(async |_| {
        at_work.send(()).unwrap();
        pending::<Result<(), ()>>().await
    });
    tokio::select! {
        never = dropped => panic!("it ended: {never:?}"),
        reached = is_at_work => reached.unwrap(),
    }

    order(&shop, &mut tx, "after", SHORT).await.unwrap();
    let setting: String = sqlx::query_scalar("SHOW lock_timeout").fetch_one(&mut *tx).await.unwrap();
    assert_eq!(setting, "7s");
    tx.commit().await.unwrap();
    first.rollback().await.unwrap();
    for name in ["held", "failed", "dropped"] {
        assert!(shop.knows_nothing_of(name).await, "{name}");
    }
    assert_eq!(shop.effects("after"), 1);
}

#[tokio::test]
async fn a_conflict_reaches_the_caller_through_sqlx() {
    let shop = Shop::open().await;
    let pool = pool(&shop).await;
    let mut tx = pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ").await.unwrap();
    sqlx::query("SELECT count(*) FROM pg_class").fetch_one(&mut *tx).await.unwrap();
    shop.order_and_commit("a").await;
    let conflict = order(&shop, &mut tx, "a", SHORT).await.unwrap_err();
    assert!(matches!(conflict, OnceInError::Conflict(_)) && conflict.is_transient(), "{conflict:?}");
}
