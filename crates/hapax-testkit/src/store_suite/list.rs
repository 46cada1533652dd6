//! Listing and counting: every record is shown once.

use std::collections::BTreeSet;

use hapax_core::{ClaimRequest, Page, Query, RecordId, Scope, State, Stats, Store, StoreErrorKind};

use super::script::*;
use crate::rig::Rig;

/// Pages show every record exactly once, newest first, and the last page is marked as the last.
pub async fn pages_show_every_record_once(rig: &impl Rig) {
    let store = rig.store();
    let mut claimed = BTreeSet::new();
    for number in 0..10 {
        let ask = ask(rig, &format!("page {number}"));
        acquire(&*store, &ask).await;
        claimed.insert(ask.key.id);
        // Some are of the same millisecond, some are not: the order must be total either way.
        if number % 3 == 2 {
            rig.advance(rig.facts().lease / 10).await;
        }
    }
    for limit in [1, 3, 5, 10, 100] {
        let mut query = Query { limit, ..Query::default() };
        let mut shown = Vec::new();
        loop {
            let page = list(&*store, &query).await;
            assert!(page.records.len() <= limit && page.unreadable.is_empty());
            shown.extend(page.records);
            assert!(shown.len() <= claimed.len(), "pages of {limit} end");
            match page.next {
                Some(next) => query.cursor = Some(next),
                None => break,
            }
        }
        assert!(
            shown.windows(2).all(|two| two[0].created_at >= two[1].created_at),
            "pages of {limit} show the newest first"
        );
        assert_eq!(shown.len(), claimed.len(), "pages of {limit} show each record once");
        assert_eq!(shown.iter().map(|record| record.key.id).collect::<BTreeSet<_>>(), claimed);
    }
}

/// A record that is listed is the record that is stored.
pub async fn a_listed_record_is_whole(rig: &impl Rig) {
    let store = rig.store();
    for state in State::ALL {
        in_state(rig, &*store, state).await;
    }
    let page = list(&*store, &Query::default()).await;
    assert_eq!(page.records.len(), State::ALL.len());
    for listed in page.records {
        assert_eq!(listed, record(&*store, &listed.key.id).await);
    }
}

/// Filters by one or several states use the state at the time of reading.
pub async fn states_are_filtered(rig: &impl Rig) {
    let store = rig.store();
    for state in State::ALL {
        in_state(rig, &*store, state).await;
    }
    for state in State::ALL {
        let query = Query { states: vec![state], ..Query::default() };
        assert_eq!(ids(&list(&*store, &query).await), [key(state.name()).id], "state {state}");
    }
    let query = Query { states: vec![State::Completed, State::Failed], ..Query::default() };
    assert_eq!(ids(&list(&*store, &query).await).len(), 2);
    rig.advance(rig.facts().lease).await;
    let query = Query { states: vec![State::Uncertain], ..Query::default() };
    assert_eq!(ids(&list(&*store, &query).await).len(), 2, "a lapsed claim is uncertain");
}

/// Filters by namespace, operation and id compare text literally.
pub async fn scopes_and_ids_are_filtered(rig: &impl Rig) {
    let store = rig.store();
    let scopes = [
        Scope::new("POST /a_b").in_namespace("red"),
        Scope::new("POST /axb").in_namespace("red"),
        Scope::new("POST /a_bc").in_namespace("blue"),
        Scope::new("PUT /100%"),
    ];
    let mut keys = Vec::new();
    for scope in scopes {
        let key = key_in(scope, "one key");
        acquire(&*store, &ClaimRequest { key: key.clone(), ..ask(rig, "one key") }).await;
        keys.push(key.id);
    }
    let [red_a_b, red_axb, blue_a_bc, put] = keys[..] else { unreachable!("four scopes") };
    let namespace = |name: &str| Query { namespace: Some(name.to_owned()), ..Query::default() };
    let operation = |prefix: &str| Query { operation_prefix: Some(prefix.to_owned()), ..Query::default() };
    let id = |prefix: &str| Query { id_prefix: Some(prefix.to_owned()), ..Query::default() };
    let whole = red_axb.to_string();
    let expectations: [(Query, &[RecordId]); 12] = [
        (namespace("red"), &[red_a_b, red_axb]),
        (namespace("re"), &[]),
        (namespace(""), &[put]),
        (operation("POST /a_b"), &[red_a_b, blue_a_bc]),
        (operation("PUT /100%"), &[put]),
        (operation("%"), &[]),
        (operation(""), &[red_a_b, red_axb, blue_a_bc, put]),
        (Query { operation_prefix: Some("POST".to_owned()), ..namespace("blue") }, &[blue_a_bc]),
        (id(&whole), &[red_axb]),
        (id(&whole[..21]), &[red_axb]),
        (id(&whole[..16]), &[red_a_b, red_axb, blue_a_bc, put]),
        (id("zz"), &[]),
    ];
    for (query, expected) in expectations {
        let shown: BTreeSet<RecordId> = ids(&list(&*store, &query).await).into_iter().collect();
        assert_eq!(shown, expected.iter().copied().collect(), "{query:?}");
    }
}

/// Filters by age count from the last change of status.
pub async fn ages_are_filtered(rig: &impl Rig) {
    let store = rig.store();
    let step = rig.facts().lease;
    let (old, young) = (ask(rig, "old"), ask(rig, "young"));
    let lease = acquire(&*store, &young).await;
    acquire(&*store, &old).await;
    rig.advance(step * 2).await;
    complete(rig, &*store, &lease, &outcome("done")).await;
    let at_least = Query { age_min: Some(step), ..Query::default() };
    assert_eq!(ids(&list(&*store, &at_least).await), [old.key.id]);
    let at_most = Query { age_max: Some(step), ..Query::default() };
    assert_eq!(ids(&list(&*store, &at_most).await), [young.key.id]);
}

/// A filter and a page limit together still show every match.
pub async fn filtered_pages_show_every_record_once(rig: &impl Rig) {
    let store = rig.store();
    for number in 0..12 {
        let lease = acquire(&*store, &ask(rig, &format!("filtered {number}"))).await;
        if number % 3 == 0 {
            complete(rig, &*store, &lease, &outcome("done")).await;
        }
    }
    let mut query = Query { states: vec![State::Completed], limit: 3, ..Query::default() };
    let mut shown = BTreeSet::new();
    loop {
        let page = list(&*store, &query).await;
        assert!(page.records.iter().all(|record| record.state() == State::Completed));
        for id in ids(&page) {
            assert!(shown.insert(id), "{id} is shown once");
        }
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => break,
        }
    }
    assert_eq!(shown.len(), 4);
}

/// An unknown cursor is refused.
pub async fn an_unknown_cursor_is_refused(rig: &impl Rig) {
    let store = rig.store();
    acquire(&*store, &ask(rig, "listed")).await;
    for cursor in ["", "?", "not a cursor", "1-2-3", "\u{1f9e6}"] {
        let query = Query { cursor: Some(cursor.to_owned()), ..Query::default() };
        let error = store.list(&query).await.expect_err("no page for an unknown cursor");
        assert_eq!(error.kind(), StoreErrorKind::Invalid, "cursor {cursor:?}");
    }
}

/// Counts agree with the records.
pub async fn counts_agree(rig: &impl Rig) {
    let store = rig.store();
    assert_eq!(stats(&*store).await.records(), 0);
    for state in State::ALL {
        in_state(rig, &*store, state).await;
    }
    let counted = stats(&*store).await;
    let mut one_each = Stats::default();
    State::ALL.into_iter().for_each(|state| one_each.count(state));
    one_each.bytes = counted.bytes;
    assert_eq!(counted, one_each);
    rig.advance(rig.facts().lease).await;
    let counted = stats(&*store).await;
    assert_eq!((counted.in_progress, counted.uncertain), (0, 2), "a lapsed claim is uncertain");
}

/// A serving store reports that it is healthy, and its promise.
pub async fn a_serving_store_is_healthy(rig: &impl Rig) {
    let health = rig.store().health().await.expect("a store that serves is healthy");
    assert!(!health.store.is_empty() && !health.promise.words().is_empty());
}

fn ids(page: &Page) -> Vec<RecordId> {
    page.records.iter().map(|record| record.key.id).collect()
}

async fn list(store: &dyn Store, query: &Query) -> Page {
    store.list(query).await.expect("list answers")
}

async fn stats(store: &dyn Store) -> Stats {
    store.stats().await.expect("stats answers")
}
