//! Listing by index and by page.

use std::time::Duration;

use hapax_core::{Page, Query, Scope, ScopedKey, State, Store, StoreErrorKind};
use hapax_store_file::FileStore;

use crate::fixture::{Home, LEASE, RETENTION, acquire, ask, ask_for, done, finish, scoped};

async fn ids(store: &FileStore, query: Query) -> Vec<String> {
    pages(store, query)
        .await
        .into_iter()
        .flat_map(|page| page.records)
        .map(|record| record.key.id.to_string())
        .collect()
}

async fn pages(store: &FileStore, mut query: Query) -> Vec<Page> {
    let mut pages = Vec::new();
    loop {
        let page = store.list(&query).await.unwrap();
        query.cursor = page.next.clone();
        pages.push(page);
        if query.cursor.is_none() {
            return pages;
        }
    }
}

fn id(name: &str) -> String {
    scoped(name).id.to_string()
}

#[tokio::test]
async fn pages_run_from_the_newest_and_ignore_newer_records() {
    let home = Home::new();
    let store = home.open();
    for n in 0..10 {
        acquire(&store, &format!("k{n}")).await;
    }
    let first = store.list(&Query { limit: 4, ..Query::default() }).await.unwrap();
    acquire(&store, "newer").await;
    let rest = ids(&store, Query { limit: 4, cursor: first.next.clone(), ..Query::default() }).await;
    let listed: Vec<String> =
        first.records.iter().map(|record| record.key.id.to_string()).chain(rest).collect();
    let expected: Vec<String> = (0..10).rev().map(|n| id(&format!("k{n}"))).collect();
    assert_eq!(listed, expected);
}

#[tokio::test]
async fn the_last_page_has_no_cursor() {
    let home = Home::new();
    let store = home.open();
    for n in 0..6 {
        finish(&store, &format!("k{n}"), "x").await;
    }
    acquire(&store, "open").await;
    let query = Query { states: vec![State::Completed], limit: 3, ..Query::default() };
    let sizes: Vec<usize> = pages(&store, query).await.iter().map(|page| page.records.len()).collect();
    assert_eq!(sizes, [3, 3]);
}

#[tokio::test]
async fn a_key_claimed_again_after_it_expired_is_the_newest() {
    let home = Home::new();
    let store = home.open();
    finish(&store, "old", "x").await;
    home.clock.advance(RETENTION / 2);
    finish(&store, "young", "x").await;
    home.clock.advance(RETENTION / 2 + Duration::from_secs(1));
    acquire(&store, "old").await;
    assert_eq!(ids(&store, Query::default()).await, [id("old"), id("young")]);
}

#[tokio::test]
async fn states_are_those_at_the_time_of_the_read() {
    let home = Home::new();
    let store = home.open();
    acquire(&store, "lapsed").await;
    home.clock.advance(LEASE);
    acquire(&store, "open").await;
    finish(&store, "done", "x").await;
    let released = acquire(&store, "released").await;
    store.release(&released, Some(&done("no"))).await.unwrap();
    let in_state = |state| ids(&store, Query { states: vec![state], ..Query::default() });
    assert_eq!(in_state(State::Uncertain).await, [id("lapsed")]);
    assert_eq!(in_state(State::InProgress).await, [id("open")]);
    assert_eq!(in_state(State::Completed).await, [id("done")]);
    assert_eq!(in_state(State::Released).await, [id("released")]);
    assert!(in_state(State::Failed).await.is_empty());
    let open = Query { states: vec![State::Uncertain, State::InProgress], limit: 1, ..Query::default() };
    assert_eq!(ids(&store, open).await, [id("open"), id("lapsed")]);
    let stats = store.stats().await.unwrap();
    assert_eq!(
        (stats.in_progress, stats.completed, stats.failed, stats.uncertain, stats.released),
        (1, 1, 0, 1, 1)
    );
    assert!(stats.bytes > 0);
}

#[tokio::test]
async fn an_id_prefix_of_any_length_finds_its_records() {
    let home = Home::new();
    let store = home.open();
    for n in 0..40 {
        acquire(&store, &format!("k{n}")).await;
    }
    let elsewhere = ScopedKey::new(Scope::new("elsewhere"), &hapax_core::Key::new("k7").unwrap());
    store.claim(&ask_for(elsewhere.clone())).await.unwrap();
    let found = |prefix: &str| ids(&store, Query { id_prefix: Some(prefix.to_owned()), ..Query::default() });
    let whole = id("k7");
    // The first sixteen digits are the key's own hash: both scopes.
    assert_eq!(found(&whole[..16]).await, [elsewhere.id.to_string(), whole.clone()]);
    for length in [17, 31, 32, 33, 63, 64] {
        assert_eq!(found(&whole[..length]).await, [whole.as_str()], "{length} digits");
    }
    let expected: Vec<String> =
        ids(&store, Query::default()).await.into_iter().filter(|id| id.starts_with(&whole[..1])).collect();
    assert_eq!(found(&whole[..1]).await, expected);
    assert_eq!(found("").await.len(), 41);
    for nothing in ["zz", "é", "ABCDEF", &format!("{whole}0")] {
        assert!(found(nothing).await.is_empty(), "{nothing}");
    }
}

#[tokio::test]
async fn scope_and_age_filter_beyond_the_first_read() {
    let home = Home::new();
    let store = home.open();
    let wanted = ScopedKey::new(
        Scope::new("PUT /things").in_namespace("blue"),
        &hapax_core::Key::new("needle").unwrap(),
    );
    store.claim(&ask_for(wanted.clone())).await.unwrap();
    home.clock.advance(Duration::from_secs(60));
    // More rows than one read of the search.
    let asks: Vec<_> = (0..600).map(|n| ask(&format!("hay-{n}"))).collect();
    futures_util::future::join_all(asks.iter().map(|ask| store.claim(ask))).await;
    let queries = [
        Query { namespace: Some("blue".to_owned()), ..Query::default() },
        Query { operation_prefix: Some("PUT /".to_owned()), ..Query::default() },
        Query { age_min: Some(Duration::from_secs(60)), ..Query::default() },
    ];
    for query in queries {
        assert_eq!(ids(&store, query.clone()).await, [wanted.id.to_string()], "{query:?}");
    }
    let young = Query { age_max: Some(Duration::from_secs(59)), limit: 250, ..Query::default() };
    assert_eq!(ids(&store, young).await.len(), 600);
}

#[tokio::test]
async fn a_cursor_from_elsewhere_is_refused() {
    let home = Home::new();
    let store = home.open();
    for cursor in ["", "nonsense", "-1", "0", "00ff", "FF", "99999999999999999999"] {
        let query = Query { cursor: Some(cursor.to_owned()), ..Query::default() };
        let error = store.list(&query).await.expect_err(cursor);
        assert_eq!(error.kind(), StoreErrorKind::Invalid, "{cursor}");
    }
}
