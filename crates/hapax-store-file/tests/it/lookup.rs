//! What a look finds while the writer moves a record.

use std::cell::Cell;
use std::time::Duration;

use futures_util::future::join_all;
use hapax_core::{Fenced, Lookup, Store};
use hapax_store_file::FileStore;

use crate::fixture::{Home, acquire, done, scoped};

const RETENTION: Duration = Duration::from_secs(1);
const RECORDS: usize = 150;

async fn live(store: &FileStore, name: &str) {
    let lease = acquire(store, name).await;
    assert_eq!(store.complete(&lease, &done("x"), RETENTION).await.unwrap(), Fenced::Applied);
}

/// A store in which all records are in the index and have expired.
async fn expired(home: &Home) -> FileStore {
    let store = home.open();
    let names: Vec<String> = (0..RECORDS).map(|n| n.to_string()).collect();
    join_all(names.iter().map(|name| live(&store, name))).await;
    drop(store);
    home.open()
}

/// Begins new lives, first of a record in the index and then of one that waits for it, and looks all the while.
async fn look_while_records_live_again(home: &Home, store: &FileStore, onlooker: &FileStore) {
    let at = Cell::new(0);
    let lives = async {
        while at.get() < RECORDS {
            for _ in 0..2 {
                home.clock.advance(2 * RETENTION);
                live(store, &at.get().to_string()).await;
            }
            at.set(at.get() + 1);
        }
    };
    let looks = async {
        while at.get() < RECORDS {
            let id = scoped(&at.get().to_string()).id;
            for found in join_all((0..16).map(|_| onlooker.get(&id))).await {
                assert!(matches!(found.unwrap(), Lookup::Found { .. }), "record {}", at.get());
            }
        }
    };
    tokio::join!(lives, looks);
}

#[tokio::test]
async fn a_record_that_begins_a_new_life_is_there_all_the_while() {
    let home = Home::new();
    let store = expired(&home).await;
    look_while_records_live_again(&home, &store, &store).await;
}

#[tokio::test]
async fn a_record_that_begins_a_new_life_is_there_for_another_process_too() {
    let home = Home::new();
    let store = expired(&home).await;
    let onlooker = FileStore::open_read_only(home.path()).unwrap();
    look_while_records_live_again(&home, &store, &onlooker).await;
}
