//! A sweep removes due records and reads no others.

use std::time::Duration;

use hapax_core::{Fenced, Lookup, Reason, Store, Swept};

use crate::fixture::{Home, RETENTION, UNCERTAIN_RETENTION, acquire, done, finish, scoped};

#[tokio::test]
async fn removes_only_due_records_in_batches() {
    let home = Home::new();
    let store = home.open();
    for n in 0..5 {
        finish(&store, &format!("old-{n}"), "x").await;
    }
    home.clock.advance(RETENTION / 2);
    finish(&store, "young", "x").await;
    home.clock.advance(RETENTION / 2);
    assert_eq!(store.sweep(3).await.unwrap(), Swept { expired: 3, dropped: 0, more: true });
    assert_eq!(store.sweep(3).await.unwrap(), Swept { expired: 2, dropped: 0, more: false });
    assert_eq!(store.sweep(3).await.unwrap(), Swept::default());
    assert!(matches!(store.get(&scoped("young").id).await.unwrap(), Lookup::Found { .. }));
    // Outcomes go with their records.
    let left: i64 = home.shell().query_row("SELECT count(*) FROM outcome", [], |row| row.get(0)).unwrap();
    assert_eq!(left, 1);
}

#[tokio::test]
async fn counts_dropped_records_apart() {
    let home = Home::new();
    let store = home.open();
    let lease = acquire(&store, "abandoned").await;
    assert_eq!(store.abandon(&lease, Reason::Panicked).await.unwrap(), Fenced::Applied);
    acquire(&store, "lapsed").await;
    let released = acquire(&store, "released").await;
    store.release(&released, Some(&done("no"))).await.unwrap();
    home.clock.advance(UNCERTAIN_RETENTION);
    let renewed = acquire(&store, "renewed").await;
    assert_eq!(store.sweep(10).await.unwrap(), Swept { expired: 1, dropped: 2, more: false });
    // A claim with a valid lease is not due, however old.
    assert_eq!(store.renew(&renewed).await.unwrap(), Fenced::Applied);
}

#[tokio::test]
async fn does_not_read_rows_that_are_not_due() {
    let home = Home::new();
    let store = home.open();
    finish(&store, "due", "x").await;
    home.clock.advance(RETENTION);
    finish(&store, "not due", "x").await;
    drop(store);
    let shell = home.shell();
    for state in 1..=5 {
        let mut plan = shell
            .prepare("EXPLAIN QUERY PLAN SELECT rowid FROM record INDEXED BY record_by_state WHERE state = ?1 AND due_ms <= ?2 ORDER BY due_ms")
            .unwrap();
        let steps: Vec<String> =
            plan.query_map([state, 0], |row| row.get(3)).unwrap().map(|step| step.unwrap()).collect();
        assert_eq!(steps.len(), 1, "{steps:?}");
        assert!(steps[0].contains("COVERING INDEX record_by_state (state=? AND due_ms<?)"), "{steps:?}");
    }
}

#[tokio::test]
async fn unreadable_rows_do_not_block_others() {
    let home = Home::new();
    let store = home.open();
    for n in 0..6 {
        finish(&store, &format!("k{n}"), "x").await;
    }
    home.shell().execute("UPDATE record SET head = x'00' WHERE rowid <= 4", []).unwrap();
    home.clock.advance(RETENTION + Duration::from_secs(1));
    assert_eq!(store.sweep(1).await.unwrap(), Swept { expired: 1, dropped: 0, more: true });
    assert_eq!(store.sweep(1).await.unwrap(), Swept { expired: 1, dropped: 0, more: false });
}

/// Other operations wait for a sweep, and outcomes may be large.
#[tokio::test]
async fn does_not_read_outcomes() {
    let home = Home::new();
    let store = home.open();
    finish(&store, "a", "x").await;
    home.shell().execute("UPDATE outcome SET outcome = x'00'", []).unwrap();
    assert_eq!(store.sweep(10).await.unwrap(), Swept::default());
    home.clock.advance(RETENTION + Duration::from_secs(1));
    assert_eq!(store.sweep(10).await.unwrap(), Swept { expired: 1, dropped: 0, more: false });
    assert_eq!(store.get(&scoped("a").id).await.unwrap(), Lookup::Absent);
}
