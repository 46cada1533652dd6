//! Outcomes that do not fit in one item.

use std::time::Duration;

use hapax_core::{Claim, Class, Format, Lookup, Recorded, Store};
use hapax_testkit::servers::DynamoDbServer;
use serde_json::{Value, json};

use crate::fixture::{RETENTION, acquire, ask, clock, connect, options, replayed};

/// Three parts and a bit.
const LARGE: usize = 3 * (384 << 10) + 1;

fn large(seed: u8) -> Recorded {
    let payload: Vec<u8> = (0..LARGE).map(|at| (at % 251) as u8 ^ seed).collect();
    Recorded::new(Class::Success, Format::HTTP, payload)
}

/// The ids of all items.
fn items(server: &DynamoDbServer, table: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut scan = json!({"TableName": table, "ProjectionExpression": "id"});
    loop {
        let page: Value = serde_json::from_str(&server.call("Scan", &scan.to_string())).unwrap();
        let items = page["Items"].as_array().unwrap();
        names.extend(items.iter().map(|item| item["id"]["S"].as_str().unwrap().to_owned()));
        match page.get("LastEvaluatedKey") {
            Some(last) => scan["ExclusiveStartKey"] = last.clone(),
            None => return names,
        }
    }
}

#[tokio::test]
async fn parts_are_removed_with_their_record() {
    let server = DynamoDbServer::start();
    connect(&server, "large").await;
    let clock = clock();
    let store = options(&server, "large").clock(clock.clone()).connect().await.unwrap();
    let lease = acquire(&store, "large").await;
    store.complete(&lease, &large(0), RETENTION).await.unwrap();
    assert_eq!(items(&server, "large").len(), 5, "the record and four parts");
    let other = options(&server, "large").clock(clock.clone()).connect().await.unwrap();
    assert_eq!(replayed(&other, "large").await, large(0));
    assert!(
        matches!(other.get(&lease.id).await.unwrap(), Lookup::Found { record, .. } if record.recorded() == Some(&large(0)))
    );

    // A process that ends before its record refers to its parts leaves orphans.
    let orphan = format!("{}/00112233445566778899aabbccddeeff/0", lease.id);
    let written_at = hapax_core::Clock::now(&clock).as_millis();
    server.call(
        "PutItem",
        &format!(
            r#"{{"TableName": "large", "Item": {{"id": {{"S": "{orphan}"}}, "chunk": {{"B": "AAAA"}},
                "of": {{"S": "{}"}}, "written_at_ms": {{"N": "{written_at}"}}}}}}"#,
            lease.id
        ),
    );
    store.sweep(100).await.unwrap();
    assert!(items(&server, "large").contains(&orphan), "its record may be about to refer to it");
    clock.advance(Duration::from_secs(3600));
    store.sweep(100).await.unwrap();
    assert_eq!(items(&server, "large").len(), 5, "the orphan is gone, and nothing else");
    assert_eq!(replayed(&store, "large").await, large(0));

    clock.advance(RETENTION);
    assert_eq!(store.sweep(100).await.unwrap().expired, 1);
    while !items(&server, "large").is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_record_with_a_missing_part_is_unreadable() {
    let server = DynamoDbServer::start();
    let store = connect(&server, "large").await;
    let lease = acquire(&store, "large").await;
    store.complete(&lease, &large(1), RETENTION).await.unwrap();
    let part = items(&server, "large").into_iter().find(|name| name.ends_with("/2")).unwrap();
    server.call("DeleteItem", &format!(r#"{{"TableName": "large", "Key": {{"id": {{"S": "{part}"}}}}}}"#));
    assert_eq!(store.claim(&ask("large")).await.unwrap(), Claim::Unreadable);
    assert!(matches!(store.get(&lease.id).await.unwrap(), Lookup::Unreadable { .. }));
}
