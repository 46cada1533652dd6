//! Lookups while the writer moves a record to another row.

use std::cell::Cell;
use std::time::Duration;

use futures_util::future::join_all;
use hapax_core::{Fenced, Lookup, Store};
use hapax_store_file::FileStore;

use crate::fixture::{Home, acquire, done, scoped};

const RETENTION: Duration = Duration::from_secs(1);
const RECORDS: usize = 150;

async fn complete(store: &FileStore, name: &str) {
    let lease = acquire(store, name).await;
    assert_eq!(store.complete(&lease, &done("x"), RETENTION).await.unwrap(), Fenced::Applied);
}

/// A store in which all records are in the index and have expired.
async fn expired(home: &Home) -> FileStore {
    let store = home.open();
    let names: Vec<String> = (0..RECORDS).map(|n| n.to_string()).collect();
    join_all(names.iter().map(|name| complete(&store, name))).await;
    drop(store);
    home.open()
}

/// Claims expired keys again, first of a record in the index and then of one in the memtable, with lookups meanwhile.
async fn look_up_while_keys_are_claimed_again(home: &Home, store: &FileStore, reader: &FileStore) {
    let at = Cell::new(0);
    let claims = async {
        while at.get() < RECORDS {
            for _ in 0..2 {
                home.clock.advance(2 * RETENTION);
                complete(store, &at.get().to_string()).await;
            }
            at.set(at.get() + 1);
        }
    };
    let lookups = async {
        while at.get() < RECORDS {
            let id = scoped(&at.get().to_string()).id;
            for found in join_all((0..16).map(|_| reader.get(&id))).await {
                assert!(matches!(found.unwrap(), Lookup::Found { .. }), "record {}", at.get());
            }
        }
    };
    tokio::join!(claims, lookups);
}

#[tokio::test]
async fn a_key_that_is_claimed_again_is_always_found() {
    let home = Home::new();
    let store = expired(&home).await;
    look_up_while_keys_are_claimed_again(&home, &store, &store).await;
}

#[tokio::test]
async fn a_key_that_is_claimed_again_is_always_found_by_another_process() {
    let home = Home::new();
    let store = expired(&home).await;
    let reader = FileStore::open_read_only(home.path()).unwrap();
    look_up_while_keys_are_claimed_again(&home, &store, &reader).await;
}
