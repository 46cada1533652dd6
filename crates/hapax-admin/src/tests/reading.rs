//! Tests of queries, counts, configuration and health.

use std::collections::BTreeSet;
use std::sync::Arc;

use hapax::MemoryStore;
use hapax_core::StoreErrorKind;
use hapax_testkit::{Fault, Faulty, Op, Plan};
use serde_json::json;

use super::*;
use crate::query::query_value;
use crate::test_listener::{KEY, PAYLOAD, key};

async fn filled() -> (TestListener, Filled) {
    let listener = TestListener::start().await;
    let filled = listener.fill().await;
    (listener, filled)
}

fn ids(page: &Value) -> BTreeSet<String> {
    let records = page["records"].as_array().unwrap();
    records.iter().map(|record| record["id"].as_str().unwrap().to_owned()).collect()
}

fn set<const N: usize>(ids: [hapax_core::RecordId; N]) -> BTreeSet<String> {
    ids.map(|id| id.to_string()).into()
}

#[tokio::test]
async fn records_are_found_by_every_filter() {
    let (listener, it) = filled().await;
    let prefix = &it.failed.to_string()[..10];
    let all = set([it.in_progress, it.completed, it.failed, it.uncertain, it.lapsed, it.released]);
    for (query, expected) in [
        ("", all.clone()),
        ("?state=uncertain", set([it.uncertain, it.lapsed])),
        ("?state=completed,failed", set([it.completed, it.failed])),
        ("?operation=POST%20/v1/rel", set([it.released])),
        ("?namespace=shop", all.clone()),
        ("?namespace=other", set([])),
        (&format!("?id={prefix}"), set([it.failed])),
        ("?older_than_ms=3600000", set([])),
        ("?newer_than_ms=3600000", all.clone()),
    ] {
        let page = listener.get(&format!("/api/v1/records{query}")).await.ok();
        assert_eq!(ids(&page), expected, "{query}");
    }
    for (filter, expected) in [
        (json!({ "key": key("completed") }), set([it.completed])),
        (json!({ "key": format!("\"{}\"", key("completed")) }), set([it.completed])),
        (json!({ "key": "another" }), set([])),
        (json!({ "state": ["released"] }), set([it.released])),
        (json!({}), all),
    ] {
        assert_eq!(
            ids(&listener.post("/api/v1/records/search", filter.clone()).await.ok()),
            expected,
            "{filter}"
        );
    }
    listener.stop().await;
}

#[tokio::test]
async fn a_listing_continues_at_its_cursor() {
    let (listener, _) = filled().await;
    let mut seen = BTreeSet::new();
    let mut cursor = String::new();
    loop {
        let page = listener.get(&format!("/api/v1/records?limit=2{cursor}")).await.ok();
        assert!(page["records"].as_array().unwrap().len() <= 2);
        seen.extend(ids(&page));
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={}", query_value(next)),
            None => break,
        }
    }
    assert_eq!(seen.len(), 6);
    listener.stop().await;
}

#[tokio::test]
async fn invalid_requests_are_refused() {
    let (listener, it) = filled().await;
    for query in [
        "?state=unknown",
        "?limit=0",
        "?limit=1001",
        "?limit=x",
        "?id=xyz",
        "?older_than_ms=-1",
        "?newer_than_ms=9007199254740992",
        "?key=k",
        "?cursor=x",
        "?limit=1&limit=2",
    ] {
        let answer = listener.get(&format!("/api/v1/records{query}")).await;
        assert_eq!(answer.status, 400, "{query}: {answer:?}");
    }
    for filter in [
        json!({ "key": "" }),
        json!({ "key": "k", "id": "ab" }),
        json!({ "unknown": 1 }),
        json!([]),
        json!({ "limit": 1001 }),
    ] {
        let answer = listener.post("/api/v1/records/search", filter.clone()).await;
        assert_eq!(answer.status, 400, "{filter}: {answer:?}");
    }
    let path = format!("/api/v1/records/{}", it.completed);
    listener.get(&format!("{path}?payload=maybe")).await.refused(400, "input-invalid");
    listener.get("/api/v1/records/abc").await.refused(400, "input-invalid");
    listener.get(&format!("/api/v1/records/{}", "0".repeat(64))).await.refused(404, "record-missing");
    listener.get("/api/v1/audit?limit=0").await.refused(400, "input-invalid");
    listener.get("/api/v1/nothing").await.refused(404, "route-missing");
    let refused = listener.api("PUT", &path).send().await.refused(405, "method-refused");
    assert_eq!(refused.header("allow"), "GET,HEAD");
    listener.stop().await;
}

#[tokio::test]
async fn a_payload_is_returned_only_on_request_with_an_audit_entry() {
    let (listener, it) = filled().await;
    let path = format!("/api/v1/records/{}", it.completed);
    for hidden in [path.clone(), format!("{path}?payload=false"), "/api/v1/records".to_owned()] {
        assert!(!listener.get(&hidden).await.body.contains("canary-payload"), "{hidden}");
    }
    assert_eq!(listener.get("/api/v1/audit").await.ok()["entries"], json!([]));
    let shown = listener.get(&format!("{path}?payload=true")).await.ok();
    assert_eq!(shown["record"]["recorded"]["payload"], PAYLOAD);
    let entry = &listener.get("/api/v1/audit").await.ok()["entries"][0];
    assert_eq!((&entry["action"], &entry["result"]), (&json!("show_payload"), &json!("done")));
    listener.stop().await;
}

#[tokio::test]
async fn no_response_contains_a_key_principal_or_token() {
    let (listener, it) = filled().await;
    listener.post("/api/v1/records/search", json!({ "key": key("completed") })).await.ok();
    let paths = [
        "/api/v1/records".to_owned(),
        format!("/api/v1/records/{}?payload=true", it.completed),
        "/api/v1/stats".to_owned(),
        "/api/v1/config".to_owned(),
        "/api/v1/audit".to_owned(),
        "/metrics".to_owned(),
        "/readyz".to_owned(),
    ];
    for path in paths {
        let body = listener.get(&path).await.body;
        for secret in [KEY, TOKEN, "canary-principal"] {
            assert!(!body.contains(secret), "{secret} in {path}: {body}");
        }
    }
    let bad = listener.post("/api/v1/records/search", json!({ "key": format!("{KEY}\n") })).await;
    assert_eq!(bad.status, 400);
    assert!(!bad.body.contains(KEY), "{bad:?}");
    listener.stop().await;
}

#[tokio::test]
async fn counts_and_configuration_are_returned() {
    let (listener, _) = filled().await;
    metrics::with_local_recorder(&listener.recorder, || {
        metrics::counter!(hapax::observe::REQUESTS, "surface" => "http", "route" => "/", "outcome" => "ran")
            .increment(3);
    });
    let stats = listener.get("/api/v1/stats").await.ok();
    assert_eq!(stats["records"]["uncertain"], 2);
    assert_eq!(stats["records"]["completed"], 1);
    assert_eq!(stats["requests"]["ran"], 3);
    assert_eq!(stats["store"]["kind"], "memory");
    assert_eq!(listener.get("/api/v1/config").await.ok()["defaults"]["lease"], "30s");
    assert!(listener.get("/metrics").await.body.contains("hapax_requests_total"));
    listener.stop().await;
}

#[tokio::test]
async fn a_process_that_drains_is_not_ready_but_alive() {
    let listener = TestListener::start().await;
    assert_eq!(listener.get("/readyz").await.ok()["ready"], true);
    listener.drain();
    let answer = listener.get("/readyz").await;
    assert_eq!((answer.status.as_u16(), &answer.json()["ready"]), (503, &json!(false)));
    assert_eq!(listener.get("/healthz").await.status, 200);
    listener.stop().await;
}

#[tokio::test]
async fn a_full_disk_is_not_ready() {
    let dir = tempfile::tempdir().unwrap();
    let room = |disk_free_min| Setup {
        options: AdminOptions { disk_free_min, ..Setup::default().options },
        data_dir: Some(dir.path().to_owned()),
        ..Setup::default()
    };
    let listener = TestListener::with(room(1)).await;
    assert_eq!(listener.get("/readyz").await.status, 200);
    listener.stop().await;
    let listener = TestListener::with(room(u64::MAX)).await;
    let answer = listener.get("/readyz").await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.json()["checks"][2]["name"], "disk");
    listener.stop().await;
}

#[tokio::test]
async fn an_unreachable_store_is_not_ready() {
    let store = Faulty::new(Arc::new(MemoryStore::new()));
    let down = Fault::ErrorBefore(StoreErrorKind::Unavailable);
    store.set_plan(Plan::new().always(Op::Health, down).always(Op::List, down));
    let listener = TestListener::with(Setup { store: Arc::new(store), ..Setup::default() }).await;
    let answer = listener.get("/readyz").await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.json()["checks"][1]["ok"], false);
    listener.get("/api/v1/records").await.refused(503, "store-unavailable");
    listener.stop().await;
}
