//! Transactions for the writes of an attempt: they end with its outcome.

use std::time::Duration;

use futures_util::future::join_all;
use hapax_core::{
    Claim, Class, Fenced, Format, Lease, Lookup, OnLapse, Reason, Recorded, State, Store, StoreErrorKind,
};
use hapax_store_postgres::{PostgresStore, Tx};
use hapax_testkit::operations::scoped;

use crate::counting::Counting;
use crate::fixture::{RETENTION, acquire, ask, done, options, replayed};
use crate::shop::Shop;

/// A transaction of this attempt with the effect in it.
async fn begun(shop: &Shop, store: &PostgresStore, lease: &Lease, name: &str) -> Tx {
    let tx = store.transaction_of(lease.fence).await.unwrap();
    tx.batch_execute(&shop.effect(name)).await.unwrap();
    tx
}

async fn state(store: &PostgresStore, name: &str) -> State {
    match store.get(&scoped(name).id).await.unwrap() {
        Lookup::Found { record, .. } => record.state(),
        other => panic!("{name}: {other:?}"),
    }
}

/// A transaction of another store would not be committed when the attempt succeeds here.
#[tokio::test]
async fn only_the_store_that_claimed_begins_a_transaction() {
    let shop = Shop::open().await;
    let other = shop.options().connect().await.unwrap();
    let lease = acquire(&shop.store, "elsewhere").await;
    let refused = other.transaction_of(lease.fence).await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Invalid);
    assert_eq!(shop.store.complete(&lease, &done("yes"), RETENTION).await.unwrap(), Fenced::Applied);
    let ended = shop.store.transaction_of(lease.fence).await.unwrap_err();
    assert_eq!(ended.kind(), StoreErrorKind::Invalid);
}

#[tokio::test]
async fn x_12_success_commits_and_everything_else_rolls_back() {
    let shop = Shop::open().await;
    let store = &shop.store;
    let error = Recorded::new(Class::Error, Format::FUNCTION, "no");

    let lease = acquire(store, "success").await;
    // The same attempt gets the same transaction, also concurrently.
    let both = [(); 2].map(|()| begun(&shop, store, &lease, "success"));
    drop(join_all(both).await);
    assert_eq!(shop.effects("success"), 0);
    assert_eq!(store.complete(&lease, &done("yes"), RETENTION).await.unwrap(), Fenced::Applied);
    assert_eq!(store.complete(&lease, &done("yes"), RETENTION).await.unwrap(), Fenced::Applied);
    assert_eq!((shop.effects("success"), replayed(store, "success").await), (2, done("yes")));

    let lease = acquire(store, "error").await;
    drop(begun(&shop, store, &lease, "error").await);
    assert_eq!(store.complete(&lease, &error, RETENTION).await.unwrap(), Fenced::Applied);
    let lease = acquire(store, "release").await;
    drop(begun(&shop, store, &lease, "release").await);
    assert_eq!(store.release(&lease, None).await.unwrap(), Fenced::Applied);
    let lease = acquire(store, "abandon").await;
    drop(begun(&shop, store, &lease, "abandon").await);
    assert_eq!(store.abandon(&lease, Reason::Declared).await.unwrap(), Fenced::Applied);
    let ends = [("error", State::Failed), ("release", State::Released), ("abandon", State::Uncertain)];
    for (name, end) in ends {
        assert_eq!((shop.effects(name), state(store, name).await), (0, end), "{name}");
    }
    let open = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' AND query LIKE";
    assert_eq!(shop.server.sql(&format!("{open} '%{}%'", shop.schema)), "0");
}

#[tokio::test]
async fn an_attempt_that_was_taken_over_commits_nothing() {
    let shop = Shop::open().await;
    let store = &shop.store;
    let mut ask = ask("a");
    (ask.lease, ask.on_lapse) = (Duration::ZERO, OnLapse::Rerun);
    let Claim::Acquired(first) = store.claim(&ask).await.unwrap() else { panic!("it is free") };
    drop(begun(&shop, store, &first, "a").await);
    ask.nonce = hapax_core::Nonce::random();
    let Claim::Acquired(second) = store.claim(&ask).await.unwrap() else { panic!("it has lapsed") };
    drop(begun(&shop, store, &second, "a").await);

    assert_eq!(store.complete(&first, &done("first"), RETENTION).await.unwrap(), Fenced::Lost);
    assert_eq!(shop.effects("a"), 0);
    assert_eq!(store.complete(&second, &done("second"), RETENTION).await.unwrap(), Fenced::Applied);
    assert_eq!((shop.effects("a"), replayed(store, "a").await), (1, done("second")));
}

#[tokio::test]
async fn a_failed_commit_releases_the_key() {
    let shop = Shop::open().await;
    let store = &shop.store;
    let lease = acquire(store, "held").await;
    let held = begun(&shop, store, &lease, "held").await;
    assert_eq!(store.complete(&lease, &done("yes"), RETENTION).await.unwrap(), Fenced::Lost);
    drop(held);

    let lease = acquire(store, "aborted").await;
    let aborted = begun(&shop, store, &lease, "aborted").await;
    aborted.batch_execute("SELECT 1 / 0").await.unwrap_err();
    drop(aborted);
    assert_eq!(store.complete(&lease, &done("yes"), RETENTION).await.unwrap(), Fenced::Lost);

    // The deferred constraint is checked at commit.
    shop.server.sql(&format!(
        "ALTER TABLE {}.effect ADD CONSTRAINT once UNIQUE (key) DEFERRABLE INITIALLY DEFERRED",
        shop.schema
    ));
    let lease = acquire(store, "refused").await;
    drop(begun(&shop, store, &lease, "refused").await);
    drop(begun(&shop, store, &lease, "refused").await);
    assert_eq!(store.complete(&lease, &done("yes"), RETENTION).await.unwrap(), Fenced::Lost);

    for name in ["held", "aborted", "refused"] {
        assert_eq!((shop.effects(name), state(store, name).await), (0, State::Released), "{name}");
    }
}

#[tokio::test]
async fn an_outcome_is_never_recorded_without_its_effect() {
    let shop = Shop::open().await;
    let between = Counting::before(shop.server.port());
    let lossy = options(&between.url()).schema(&shop.schema).connect().await.unwrap();
    // The reply to the completion is lost, and the one to the commit.
    for (passed, effects, end) in [(0, 0, State::Released), (1, 1, State::Completed)] {
        let name = format!("lost-{passed}");
        let lease = acquire(&lossy, &name).await;
        drop(begun(&shop, &lossy, &lease, &name).await);
        between.lose_one_after(passed);
        let fenced = lossy.complete(&lease, &done("yes"), RETENTION).await.unwrap();
        assert_eq!((fenced, between.left_to_lose()), (Fenced::Lost, 0), "{name}");
        assert_eq!((shop.effects(&name), state(&lossy, &name).await), (effects, end), "{name}");
    }

    // A completion that is cancelled halfway and repeated.
    let lease = acquire(&lossy, "given-up").await;
    let tx = begun(&shop, &lossy, &lease, "given-up").await;
    let holder = shop.client().await;
    let hold = format!("BEGIN; SELECT 1 FROM {}.record WHERE id = '\\x{}' FOR UPDATE", shop.schema, lease.id);
    holder.batch_execute(&hold).await.unwrap();
    drop(tx);
    {
        let outcome = done("yes");
        let mut completing = lossy.complete(&lease, &outcome, RETENTION);
        assert!(futures_util::poll!(&mut completing).is_pending());
    }
    assert_eq!(lossy.complete(&lease, &done("yes"), RETENTION).await.unwrap(), Fenced::Lost);
    holder.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!((shop.effects("given-up"), state(&lossy, "given-up").await), (0, State::InProgress));
}

/// Each condition of the statement that ends a transaction with its outcome.
#[tokio::test]
async fn x_02_a_completion_in_a_transaction_applies_only_to_the_attempts_own_record() {
    let shop = Shop::open().await;
    let store = &shop.store;
    let cases = [
        ("untouched", "UPDATE SCHEMA.record SET attempt = attempt WHERE", true),
        ("uncertain", "UPDATE SCHEMA.record SET state = 4, reason = 1, lease_until = 0 WHERE", true),
        ("superseded", "UPDATE SCHEMA.record SET nonce = sha256(nonce) WHERE", false),
        ("released", "UPDATE SCHEMA.record SET state = 5, lease_until = 0 WHERE", false),
        ("newer layout", "UPDATE SCHEMA.record SET version = 2 WHERE", false),
        ("damaged", "UPDATE SCHEMA.record SET operation = '\\x00' WHERE", false),
        ("deleted", "DELETE FROM SCHEMA.record WHERE", false),
    ];
    for (name, change, applies) in cases {
        let lease = acquire(store, name).await;
        drop(begun(&shop, store, &lease, name).await);
        shop.server.sql(&format!("{} id = '\\x{}'", change.replace("SCHEMA", &shop.schema), lease.id));
        let fenced = store.complete(&lease, &done("yes"), RETENTION).await.unwrap();
        let expected = if applies { Fenced::Applied } else { Fenced::Lost };
        assert_eq!((fenced, shop.effects(name)), (expected, usize::from(applies)), "{name}");
        let columns = "state, reason, lease_until, expires_at - updated_at";
        let row = shop.server.sql(&format!(
            "SELECT concat_ws(' ', {columns}) FROM {}.record WHERE id = '\\x{}' AND state = 2",
            shop.schema, lease.id
        ));
        let completed = format!("2 0 0 {}", RETENTION.as_millis());
        assert_eq!(row, if applies { completed } else { String::new() }, "{name}");
    }
}
