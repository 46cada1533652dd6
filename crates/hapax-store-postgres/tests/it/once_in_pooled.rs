//! Work in transactions through a pooler in transaction mode: the first run, its replay, and a duplicate that arrives
//! before the first has ended.

use std::convert::Infallible;
use std::sync::Arc;

use hapax_store_postgres::OnceInError;

use crate::fixture::PATIENCE;
use crate::once_in_sqlx::{self, SHORT};
use crate::shop::Shop;

#[tokio::test]
async fn in_a_transaction_of_tokio_postgres() {
    let shop = Arc::new(Shop::open_pooled().await);
    let first = shop.order_and_commit("a").await;
    let again = shop.order_and_commit("a").await;
    assert_eq!((first.replayed, again.value, again.replayed), (false, first.value, true));

    let mut holder = shop.client().await;
    let mut holder = holder.transaction().await.unwrap();
    let held = shop.order(&mut holder, "held").await.unwrap();
    let mut early = shop.client().await;
    let mut early = early.transaction().await.unwrap();
    let result = shop.once(&mut early, "held").wait(SHORT).run(async |_| Ok::<i64, Infallible>(0)).await;
    assert!(matches!(result, Err(OnceInError::InProgress { .. })), "{result:?}");
    early.commit().await.unwrap();

    let patient = tokio::spawn({
        let shop = shop.clone();
        async move {
            let mut client = shop.client().await;
            let mut tx = client.transaction().await.unwrap();
            let once = shop.once(&mut tx, "held").wait(PATIENCE);
            once.run(async |_| Ok::<i64, Infallible>(0)).await.unwrap()
        }
    });
    shop.until_a_transaction_waits().await;
    holder.commit().await.unwrap();
    let patient = patient.await.unwrap();
    assert_eq!((patient.value, patient.replayed), (held.value, true));
    assert_eq!((shop.effects("a"), shop.effects("held")), (1, 1));
}

#[tokio::test]
async fn in_a_transaction_of_sqlx() {
    let shop = Arc::new(Shop::open_pooled().await);
    let pool = once_in_sqlx::pool(&shop).await;
    let mut tx = pool.begin().await.unwrap();
    let first = once_in_sqlx::order(&shop, &mut tx, "a", SHORT).await.unwrap();
    tx.commit().await.unwrap();
    let mut tx = pool.begin().await.unwrap();
    let again = once_in_sqlx::order(&shop, &mut tx, "a", SHORT).await.unwrap();
    assert_eq!((first.replayed, again.value, again.replayed), (false, first.value, true));

    let mut holder = pool.begin().await.unwrap();
    let held = once_in_sqlx::order(&shop, &mut holder, "held", SHORT).await.unwrap();
    let result = once_in_sqlx::order(&shop, &mut tx, "held", SHORT).await;
    assert!(matches!(result, Err(OnceInError::InProgress { .. })), "{result:?}");
    tx.commit().await.unwrap();

    let patient = tokio::spawn({
        let (shop, pool) = (shop.clone(), pool.clone());
        async move {
            let mut tx = pool.begin().await.unwrap();
            once_in_sqlx::order(&shop, &mut tx, "held", PATIENCE).await.unwrap()
        }
    });
    shop.until_a_transaction_waits().await;
    holder.commit().await.unwrap();
    let patient = patient.await.unwrap();
    assert_eq!((patient.value, patient.replayed), (held.value, true));
    assert_eq!((shop.effects("a"), shop.effects("held")), (1, 1));
}
