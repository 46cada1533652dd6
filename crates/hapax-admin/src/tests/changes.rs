//! Tests of settling, releasing and deleting, and of the audit log.

use std::sync::Arc;
use std::time::Duration;

use hapax::MemoryStore;
use hapax::http::Answer;
use hapax_core::{Lookup, RecordId, State, Status, Store as _};
use hapax_testkit::{Fault, Faulty, Op, Plan, Point};
use serde_json::json;

use super::*;
use crate::test_listener::{RETENTION, completed, uncertain};

async fn state(listener: &TestListener, id: &RecordId) -> Option<State> {
    match listener.store.get(id).await.unwrap() {
        Lookup::Found { record, now } => Some(record.state_at(now)),
        Lookup::Absent => None,
        other => panic!("{other:?}"),
    }
}

async fn last_entry(listener: &TestListener) -> Value {
    listener.get("/api/v1/audit?limit=1").await.ok()["entries"][0].clone()
}

#[tokio::test]
async fn an_uncertain_record_is_settled_as_applied_with_a_result() {
    let listener = TestListener::start().await;
    let id = uncertain(&*listener.store, "a").await;
    let version = listener.version(&id).await;
    let done = listener
        .api("POST", &format!("/api/v1/records/{id}/settle"))
        .with("x-hapax-operator", "Zoë 李")
        .json(&json!({ "version": version, "verdict": "applied", "payload": "paid", "reason": "seen at the bank" }))
        .send()
        .await
        .ok();
    assert_eq!(done["done"], "settled as applied");
    assert_eq!(done["record"]["state"], "completed");
    let Lookup::Found { record, .. } = listener.store.get(&id).await.unwrap() else { panic!("gone") };
    assert!(matches!(record.status, Status::Pinned { recorded } if recorded.payload == "paid"));
    let entry = last_entry(&listener).await;
    for (member, expected) in [
        ("action", json!("settle_applied")),
        ("actor", json!("Zoë 李")),
        ("address", json!("127.0.0.1")),
        ("via", json!("api")),
        ("id", json!(id.to_string())),
        ("reason", json!("seen at the bank")),
        ("result", json!("done")),
    ] {
        assert_eq!(entry[member], expected, "{member}");
    }
    listener.stop().await;
}

#[tokio::test]
async fn every_verdict_has_its_effect() {
    let listener = TestListener::start().await;
    for (name, path, body, expected, action) in [
        ("a", "settle", json!({ "verdict": "applied" }), Some(State::Completed), "settle_applied"),
        (
            "b",
            "settle",
            json!({ "verdict": "applied", "class": "error" }),
            Some(State::Failed),
            "settle_applied",
        ),
        (
            "c",
            "settle",
            json!({ "verdict": "applied", "format": "function", "payload_base64": "MQ==", "retention_ms": 60000 }),
            Some(State::Completed),
            "settle_applied",
        ),
        ("d", "settle", json!({ "verdict": "not_applied" }), Some(State::Released), "settle_not_applied"),
        ("e", "release", json!({}), Some(State::Released), "release"),
        ("f", "delete", json!({}), None, "delete"),
    ] {
        let id = uncertain(&*listener.store, name).await;
        let mut body = body;
        body["version"] = json!(listener.version(&id).await);
        listener.post(&format!("/api/v1/records/{id}/{path}"), body).await.ok();
        assert_eq!(state(&listener, &id).await, expected, "{name}");
        let entry = last_entry(&listener).await;
        assert_eq!((&entry["action"], &entry["result"]), (&json!(action), &json!("done")), "{name}");
    }
    listener.stop().await;
}

#[tokio::test]
async fn a_result_has_the_retention_of_the_route_or_of_the_change() {
    let listener = TestListener::start().await;
    for (change, kept) in
        [(json!({}), RETENTION), (json!({ "retention_ms": 60_000 }), Duration::from_secs(60))]
    {
        let id = uncertain(&*listener.store, &kept.as_secs().to_string()).await;
        let looked_at = listener.get(&format!("/api/v1/records/{id}")).await.ok();
        assert_eq!(looked_at["settle_retention_ms"], json!(RETENTION.as_millis() as u64), "{looked_at}");
        let mut change = change;
        change["version"] = looked_at["record"]["version"].clone();
        change["verdict"] = json!("applied");
        let done = listener.post(&format!("/api/v1/records/{id}/settle"), change).await.ok();
        let of = |member: &str| done["record"][member].as_u64().unwrap();
        assert_eq!(of("expires_at_ms") - of("updated_at_ms"), kept.as_millis() as u64, "{done}");
        assert!(done.get("settle_retention_ms").is_none(), "{done}");
    }
    listener.stop().await;
}

#[tokio::test]
async fn an_uncertain_request_is_settled_with_the_response_for_its_retries() {
    let listener = TestListener::start().await;
    let id = uncertain(&*listener.store, "a").await;
    let body = json!({
        "version": listener.version(&id).await, "verdict": "applied", "reason": "seen at the bank",
        "answer": { "status": 201, "body": "{\"id\": 7}",
            "headers": { "content-type": "application/json", "link": ["one", "two"] } },
    });
    let done = listener.post(&format!("/api/v1/records/{id}/settle"), body).await.ok();
    assert_eq!(
        (&done["record"]["state"], &done["record"]["recorded"]["status"]),
        (&json!("completed"), &json!(201))
    );
    assert!(done["record"]["recorded"].get("headers").is_none(), "{done}");
    let shown = listener.get(&format!("/api/v1/records/{id}?payload=true")).await.ok();
    assert_eq!(shown["record"]["recorded"]["payload"], "{\"id\": 7}");
    assert_eq!(shown["record"]["recorded"]["headers"]["link"], json!(["one", "two"]));
    let Lookup::Found { record, .. } = listener.store.get(&id).await.unwrap() else { panic!("gone") };
    let answer = Answer::of(record.recorded().unwrap()).unwrap();
    assert_eq!((answer.status.as_u16(), &answer.body[..]), (201, &b"{\"id\": 7}"[..]));
    let entries = listener.get("/api/v1/audit?limit=2").await.ok();
    let entry = &entries["entries"][1];
    assert_eq!(
        (&entry["action"], &entry["result"], &entry["reason"]),
        (&json!("settle_applied"), &json!("done"), &json!("seen at the bank"))
    );
    listener.stop().await;
}

#[tokio::test]
async fn a_refused_change_is_in_the_audit_log() {
    let listener = TestListener::start().await;
    let it = listener.fill().await;
    for (id, path, status, code) in [
        (it.completed, "settle", 409, "not-uncertain"),
        (it.released, "release", 409, "not-uncertain"),
        (it.in_progress, "settle", 409, "in-progress"),
        (it.in_progress, "delete", 409, "in-progress"),
    ] {
        let mut body = json!({ "version": listener.version(&id).await });
        if path == "settle" {
            body["verdict"] = json!("applied");
        }
        let before = state(&listener, &id).await;
        listener.post(&format!("/api/v1/records/{id}/{path}"), body).await.refused(status, code);
        assert_eq!(state(&listener, &id).await, before);
        assert_eq!(last_entry(&listener).await["result"], code);
    }
    let missing = format!("/api/v1/records/{}/delete", "0".repeat(64));
    listener.post(&missing, json!({ "version": "x" })).await.refused(404, "record-missing");
    listener.stop().await;
}

#[tokio::test]
async fn only_the_given_version_is_changed() {
    let listener = TestListener::start().await;
    let id = uncertain(&*listener.store, "a").await;
    let looked_at = listener.version(&id).await;
    listener.post(&format!("/api/v1/records/{id}/release"), json!({ "version": looked_at })).await.ok();
    for path in ["settle", "release", "delete"] {
        let mut body = json!({ "version": looked_at });
        if path == "settle" {
            body["verdict"] = json!("applied");
        }
        let refused = listener.post(&format!("/api/v1/records/{id}/{path}"), body).await;
        refused.refused(409, "record-changed");
    }
    assert_eq!(state(&listener, &id).await, Some(State::Released));
    listener.stop().await;
}

#[tokio::test]
async fn invalid_changes_change_nothing() {
    let listener = TestListener::start().await;
    let id = uncertain(&*listener.store, "a").await;
    let version = listener.version(&id).await;
    let settle = format!("/api/v1/records/{id}/settle");
    for body in [
        json!({ "verdict": "applied" }),
        json!({ "version": version }),
        json!({ "version": version, "verdict": "perhaps" }),
        json!({ "version": version, "verdict": "applied", "payload": "a", "payload_base64": "YQ==" }),
        json!({ "version": version, "verdict": "applied", "payload_base64": "%" }),
        json!({ "version": version, "verdict": "applied", "format": "function", "payload": "no json" }),
        json!({ "version": version, "verdict": "applied", "reason": "x".repeat(501) }),
        json!({ "version": version, "verdict": "applied", "more": 1 }),
        json!({ "version": version, "verdict": "applied", "answer": { "status": 99 } }),
        json!({ "version": version, "verdict": "applied", "answer": { "status": 200, "headers": { "a": "b\nc: d" } } }),
        json!({ "version": version, "verdict": "applied", "answer": { "body": "no status" } }),
        json!({ "version": version, "verdict": "applied", "answer": { "status": 200 }, "payload": "a" }),
        json!({ "version": version, "verdict": "applied", "answer": { "status": 200 }, "class": "error" }),
        json!({ "version": version, "verdict": "not_applied", "answer": { "status": 200 } }),
        json!("applied"),
    ] {
        listener.post(&settle, body.clone()).await.refused(400, "input-invalid");
    }
    let body = json!({ "version": version, "verdict": "applied" });
    let plain = listener.api("POST", &settle).with("content-type", "text/plain").body(body.to_string());
    plain.send().await.refused(400, "input-invalid");
    assert_eq!(state(&listener, &id).await, Some(State::Uncertain));
    listener.stop().await;
}

#[tokio::test]
async fn the_log_is_durable_before_the_response() {
    let dir = tempfile::tempdir().unwrap();
    let setup = || Setup { data_dir: Some(dir.path().to_owned()), ..Setup::default() };
    let listener = TestListener::with(setup()).await;
    let id = completed(&*listener.store, "a").await;
    let body = json!({ "version": listener.version(&id).await, "reason": "a test" });
    listener.post(&format!("/api/v1/records/{id}/delete"), body).await.ok();
    let log = std::fs::read_to_string(dir.path().join("audit.jsonl")).unwrap();
    assert_eq!(log.lines().count(), 2, "{log}");
    listener.stop().await;
    let listener = TestListener::with(setup()).await;
    let entry = last_entry(&listener).await;
    assert_eq!((&entry["reason"], &entry["result"]), (&json!("a test"), &json!("done")));
    listener.stop().await;
}

#[tokio::test]
async fn without_an_audit_entry_nothing_is_done() {
    let dir = tempfile::tempdir().unwrap();
    let listener =
        TestListener::with(Setup { data_dir: Some(dir.path().to_owned()), ..Setup::default() }).await;
    let id = completed(&*listener.store, "a").await;
    let body = json!({ "version": listener.version(&id).await });
    listener.shared.audit.write_to(std::fs::File::open(dir.path().join("audit.jsonl")).unwrap());
    listener.post(&format!("/api/v1/records/{id}/delete"), body).await.refused(503, "audit-failed");
    let shown =
        listener.get(&format!("/api/v1/records/{id}?payload=true")).await.refused(503, "audit-failed");
    assert!(!shown.body.contains("canary-payload"));
    assert_eq!(state(&listener, &id).await, Some(State::Completed));
    listener.stop().await;
}

#[tokio::test]
async fn a_change_continues_when_its_client_disconnects() {
    let store = Faulty::new(Arc::new(MemoryStore::new()));
    let (reached, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let listener = TestListener::with(Setup { store: Arc::new(store.clone()), ..Setup::default() }).await;
    let id = completed(&store, "a").await;
    let body = json!({ "version": listener.version(&id).await });
    store.observe(move |step| {
        if step.op == Op::Delete {
            let _ = reached.send(());
        }
    });
    store.set_plan(Plan::new().at_nth(Op::Delete, 1, Fault::Stall(Point::Before)));
    {
        let path = format!("/api/v1/records/{id}/delete");
        let asking = listener.post(&path, body);
        tokio::select! {
            answer = asking => panic!("answered while the store stalls: {answer:?}"),
            _ = seen.recv() => {}
        }
    }
    store.resume();
    let url = listener.url.clone();
    listener.stop().await;
    assert!(TcpStream::connect(url.trim_start_matches("http://")).await.is_err(), "it has ended");
    assert!(matches!(store.get(&id).await.unwrap(), Lookup::Absent), "and the record is gone");
}
