//! Unreadable records are present: never claimed, never overwritten, never swept.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Duration;

use hapax_core::{Claim, Fenced, Lookup, Query, Reason, Settlement, Store, StoreErrorKind, Verdict};
use hapax_store_file::FileStore;

use crate::fixture::{Home, RETENTION, acquire, ask, done, finish, scoped};

/// Ways to damage the one finished record of a store, with the statement that does it.
const DAMAGES: [(&str, &str); 12] = [
    ("head zeroed", "UPDATE record SET head = zeroblob(length(head))"),
    ("head cut", "UPDATE record SET head = substr(head, 1, 40)"),
    ("head of another version", "UPDATE record SET head = CAST(x'09' || substr(head, 2) AS BLOB)"),
    ("head not bytes", "UPDATE record SET head = 'text'"),
    ("state contradicts", "UPDATE record SET state = 5"),
    ("lease contradicts", "UPDATE record SET lease_ms = 1"),
    ("due contradicts", "UPDATE record SET due_ms = due_ms - 1"),
    ("update contradicts", "UPDATE record SET updated_ms = 7"),
    ("second half of the id changed", "UPDATE record SET tail = zeroblob(16)"),
    ("outcome zeroed", "UPDATE outcome SET outcome = zeroblob(length(outcome))"),
    ("outcome gone", "DELETE FROM outcome"),
    ("outcome forgotten", "UPDATE record SET outcome_row = NULL"),
];

/// Damages that leave the head intact, which says when the record is due.
const LEFT_TO_A_SWEEP: [&str; 2] = ["outcome zeroed", "outcome gone"];

#[tokio::test]
async fn a_damaged_record_is_present_and_left_alone() {
    for (name, statement) in DAMAGES {
        let home = Home::new();
        let store = home.open();
        let lease = finish(&store, "a", "the result").await;
        assert_eq!(home.shell().execute(statement, []).unwrap(), 1, "{name}");
        let damaged = dump(&home);

        assert_eq!(store.claim(&ask("a")).await.unwrap(), Claim::Unreadable, "{name}");
        match store.get(&lease.id).await.unwrap() {
            Lookup::Unreadable { why } => assert!(!why.contains("the result"), "{name}: {why}"),
            other => panic!("{name}: {other:?}"),
        }
        let settlement = Settlement::new(lease.fence.nonce, Verdict::NotApplied);
        let refused = [
            store.renew(&lease).await.unwrap_err(),
            store.complete(&lease, &done("other"), RETENTION).await.unwrap_err(),
            store.release(&lease, None).await.unwrap_err(),
            store.abandon(&lease, Reason::Declared).await.unwrap_err(),
            store.settle(&lease.id, &settlement).await.unwrap_err(),
            store.delete(&lease.id, lease.fence.nonce).await.unwrap_err(),
        ];
        for error in refused {
            assert_eq!(error.kind(), StoreErrorKind::Incompatible, "{name}: {error}");
        }
        let page = store.list(&Query::default()).await.unwrap();
        assert_eq!((page.records.len(), page.unreadable.len()), (0, 1), "{name}");
        // The record is long due by its columns.
        home.clock.advance(Duration::from_secs(365 * 24 * 3600));
        if !LEFT_TO_A_SWEEP.contains(&name) {
            let swept = store.sweep(10).await.unwrap();
            assert_eq!((swept.expired, swept.dropped), (0, 0), "{name}");
        }
        assert_eq!(dump(&home), damaged, "{name}: changed");
        // Other records are not affected.
        acquire(&store, "b").await;
        drop(store);

        let store = home.open();
        assert_eq!(store.claim(&ask("a")).await.unwrap(), Claim::Unreadable, "{name}, opened again");
    }
}

/// The rows of the damaged record.
fn dump(home: &Home) -> Vec<(String, String, Option<String>)> {
    let shell = home.shell();
    let mut statement = shell
        .prepare(
            "SELECT quote(hash), state || quote(lease_ms) || due_ms || updated_ms || quote(head), quote(outcome) \
             FROM record LEFT JOIN outcome ON outcome.rowid = outcome_row",
        )
        .unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    rows.map(|row| row.unwrap()).collect()
}

#[tokio::test]
async fn swapped_outcomes_are_detected() {
    let home = Home::new();
    let store = home.open();
    finish(&store, "a", "for a").await;
    finish(&store, "b", "for b").await;
    home.shell().execute("UPDATE record SET outcome_row = 3 - outcome_row", []).unwrap();
    for name in ["a", "b"] {
        assert_eq!(store.claim(&ask(name)).await.unwrap(), Claim::Unreadable);
    }
}

#[tokio::test]
async fn a_damaged_claim_of_an_earlier_process_does_not_block_the_start() {
    let home = Home::new();
    let store = home.open();
    acquire(&store, "a").await;
    acquire(&store, "b").await;
    drop(store);
    let hash = &scoped("a").id.as_bytes()[..16].to_vec();
    home.shell().execute("UPDATE record SET head = x'00' WHERE hash = ?1", [hash]).unwrap();
    let store = home.open();
    assert_eq!(store.claim(&ask("a")).await.unwrap(), Claim::Unreadable);
    assert!(matches!(
        store.claim(&ask("b")).await.unwrap(),
        Claim::Uncertain { reason: Reason::Restarted, .. }
    ));
}

/// Fills and closes a store with more records than fit on a few pages; returns their names.
async fn finish_many(home: &Home) -> Vec<String> {
    let store = home.open();
    let names: Vec<String> = (0..300).map(|n| format!("key-{n}")).collect();
    for name in &names {
        finish(&store, name, "x").await;
    }
    names
}

#[tokio::test]
async fn pages_overwritten_on_disk_never_make_a_key_fresh() {
    let home = Home::new();
    let names = finish_many(&home).await;
    // All pages but the first, which has the schema, and the root pages of the tables.
    let whole = fs::read(home.database()).unwrap();
    let keep = 4096 * 6;
    assert!(whole.len() > 2 * keep);
    let mut unreadable = 0;
    for page in (keep..whole.len()).step_by(4096) {
        let mut bytes = whole.clone();
        bytes[page..page + 4096].fill(0xA5);
        // Removes what the round before has left.
        for name in ["hapax.db-wal", "hapax.db-shm", "hapax.journal"] {
            let _ = fs::remove_file(home.path().join(name));
        }
        fs::write(home.database(), bytes).unwrap();
        // If not even the newest record is readable, the store does not open.
        let store = match FileStore::options().clock(home.clock.clone()).open(home.path()) {
            Ok(store) => store,
            Err(error) => {
                assert_eq!(error.kind(), StoreErrorKind::Incompatible, "{error}");
                continue;
            }
        };
        for name in &names {
            match store.claim(&ask(name)).await {
                Ok(Claim::Unreadable) => unreadable += 1,
                Ok(Claim::Replay { recorded, .. }) => assert_eq!(recorded, done("x")),
                Ok(other) => panic!("{name}: {other:?}"),
                Err(error) => assert_eq!(error.kind(), StoreErrorKind::Incompatible, "{name}: {error}"),
            }
        }
    }
    assert!(unreadable > 0);
}

/// Overwrites a page of a table on the disk.
fn overwrite_first_leaf(home: &Home, table: &str) {
    let page: i64 = home
        .shell()
        .query_row("SELECT min(pageno) FROM dbstat WHERE name = ?1 AND pagetype = 'leaf'", [table], |row| {
            row.get(0)
        })
        .unwrap();
    let mut bytes = fs::read(home.database()).unwrap();
    bytes[4096 * (page as usize - 1)..4096 * page as usize].fill(0xA5);
    fs::write(home.database(), bytes).unwrap();
}

#[tokio::test]
async fn keys_in_a_damaged_page_of_the_index_are_unreadable() {
    let home = Home::new();
    let names = finish_many(&home).await;
    overwrite_first_leaf(&home, "leaf");
    let store = home.open();
    let (mut unreadable, mut whole) = (0, 0);
    for name in &names {
        match store.claim(&ask(name)).await.unwrap() {
            Claim::Unreadable => unreadable += 1,
            Claim::Replay { .. } => whole += 1,
            other => panic!("{name}: {other:?}"),
        }
    }
    assert!(unreadable > 0 && whole > 0, "{unreadable} and {whole}");
    let (mut unreadable, mut acquired) = (0, 0);
    for n in 0..100 {
        match store.claim(&ask(&format!("new-{n}"))).await.unwrap() {
            Claim::Unreadable => unreadable += 1,
            Claim::Acquired { .. } => acquired += 1,
            other => panic!("new-{n}: {other:?}"),
        }
    }
    assert!(unreadable > 0 && acquired > 0, "{unreadable} and {acquired}");
}

#[tokio::test]
async fn a_lookup_in_a_damaged_page_does_not_block_other_writes() {
    let home = Home::new();
    let names = finish_many(&home).await;
    overwrite_first_leaf(&home, "record");

    let store = home.open();
    let lease = acquire(&store, "fresh").await;
    let mut unreadable = 0;
    for name in &names {
        unreadable += usize::from(store.claim(&ask(name)).await.unwrap() == Claim::Unreadable);
    }
    assert!((1..200).contains(&unreadable), "{unreadable} of 300");
    // Also an outcome that is written before it is acknowledged, in a transaction that has read the page.
    let large = acquire(&store, "large").await;
    for name in &names {
        store.get(&scoped(name).id).await.unwrap();
    }
    let result = done(&"x".repeat(2 << 20));
    assert_eq!(store.complete(&large, &result, RETENTION).await.unwrap(), Fenced::Applied);
    assert_eq!(store.complete(&lease, &done("x"), RETENTION).await.unwrap(), Fenced::Applied);
    // Commits everything.
    assert_eq!(store.stats().await.unwrap().completed, 302);
    finish(&store, "another", "x").await;
    drop(store);
    assert!(matches!(home.open().claim(&ask("fresh")).await.unwrap(), Claim::Replay { .. }));
}

/// Flips a bit of the hash of `name` in the index, where its halves are swapped.
fn flip_in_index(database: &Path, name: &str) {
    let mut bytes = fs::read(database).unwrap();
    let id = scoped(name).id;
    let turned = [&id.as_bytes()[8..16], &id.as_bytes()[..8]].concat();
    let places: Vec<usize> = (0..bytes.len() - 16).filter(|at| bytes[*at..*at + 16] == turned).collect();
    let [at] = places[..] else { panic!("{places:?}") };
    bytes[at + 15] ^= 1;
    fs::write(database, bytes).unwrap();
}

#[tokio::test]
async fn a_flipped_bit_of_the_index_hides_no_record() {
    let home = Home::new();
    let store = home.open();
    finish(&store, "a", "x").await;
    drop(store);
    flip_in_index(&home.database(), "a");
    let store = home.open();
    assert_eq!(store.claim(&ask("a")).await.unwrap(), Claim::Unreadable);
    // A key that may be in the same page of the index is not absent either.
    assert_eq!(store.claim(&ask("b")).await.unwrap(), Claim::Unreadable);
}

#[tokio::test]
async fn a_flipped_bit_of_meta_is_refused() {
    let home = Home::new();
    let store = home.open();
    finish(&store, "a", "x").await;
    drop(store);
    // A time in the far future would expire every record.
    home.shell().execute("UPDATE meta SET seen_ms = seen_ms | (1 << 45)", []).unwrap();
    for opened in [FileStore::open(home.path()), FileStore::open_read_only(home.path())] {
        assert_eq!(opened.unwrap_err().kind(), StoreErrorKind::Incompatible);
    }
}

#[tokio::test]
async fn verify_finds_damage_in_the_index_and_in_records() {
    let home = Home::new();
    let store = home.open();
    finish(&store, "a", "x").await;
    finish(&store, "b", "x").await;
    assert_eq!(store.verify().await.unwrap(), Vec::<String>::new());
    home.shell().execute("UPDATE outcome SET outcome = x'00' WHERE rowid = 2", []).unwrap();
    let found = store.verify().await.unwrap();
    assert!(found.len() == 1 && found[0].contains(&scoped("b").id.to_string()), "{found:?}");
    drop(store);

    flip_in_index(&home.database(), "a");
    let store = FileStore::open_read_only(home.path()).unwrap();
    let found = store.verify().await.unwrap();
    assert!(found.iter().any(|text| text.contains("index")), "{found:?}");
}

#[tokio::test]
async fn a_small_store_with_a_damaged_index_is_refused_after_a_crash() {
    let home = Home::new();
    let store = home.open();
    finish(&store, "a", "x").await;
    drop(store);
    // The beginning of SQLite's log, as after a crash.
    flip_in_index(&home.database(), "a");
    fs::write(home.path().join("hapax.db-wal"), [0; 32]).unwrap();
    let error = FileStore::open(home.path()).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Incompatible);
    let cause = error.source().unwrap().to_string();
    assert!(cause.contains("is damaged"), "{cause}");
    let shell = home.shell();
    shell.execute_batch("UPDATE meta SET seal = 'anew'").unwrap();
    drop(shell);
    assert!(matches!(home.open().claim(&ask("a")).await.unwrap(), Claim::Replay { .. }));
}

#[tokio::test]
async fn an_index_is_not_rebuilt_from_unreadable_records() {
    let home = Home::new();
    let store = home.open();
    finish(&store, "a", "x").await;
    drop(store);
    home.shell()
        .execute_batch("UPDATE record SET hash = zeroblob(16); UPDATE meta SET seal = 'anew'")
        .unwrap();
    let error = FileStore::open(home.path()).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Incompatible);
    assert!(error.source().unwrap().to_string().contains("record"), "{error:?}");
}
