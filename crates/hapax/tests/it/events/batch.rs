//! Batches of SQS and single events within an invocation, which has an end.

use std::time::{Duration, SystemTime};

use hapax::events::lambda::{SqsBatch, SqsBatchResponse};
use hapax::events::{Handled, NotHandled};

use super::town::{MINUTE, Town, event};
use crate::world::LEASE;

/// A batch of messages of these types; with a group, of a FIFO queue.
fn batch(messages: &[(&str, &str, Option<&str>)]) -> SqsBatch {
    let records: Vec<serde_json::Value> = messages
        .iter()
        .map(|(id, kind, group)| {
            let mut attributes = serde_json::json!({ "ApproximateReceiveCount": "1" });
            if let Some(group) = group {
                attributes["MessageGroupId"] = serde_json::json!(group);
            }
            let suffix = if group.is_some() { ".fifo" } else { "" };
            serde_json::json!({
                "messageId": id, "body": format!("{{\"id\":\"{id}\"}}"), "attributes": attributes,
                "messageAttributes": { "type": { "stringValue": kind, "dataType": "String" } },
                "eventSourceARN": format!("arn:aws:sqs:eu-central-1:123456789012:orders{suffix}"),
            })
        })
        .collect();
    serde_json::from_value(serde_json::json!({ "Records": records })).unwrap()
}

fn failed(response: &SqsBatchResponse) -> Vec<&str> {
    response.batch_item_failures.iter().map(|failure| &*failure.item_identifier).collect()
}

fn within(span: Duration) -> SystemTime {
    SystemTime::now() + span
}

#[tokio::test(start_paused = true)]
async fn v_11_every_message_of_a_batch_has_its_own_answer() {
    let town = Town::new();
    // The pauses are random: with a limit, its tries may be over before the time is.
    let endless = town.second(|consumer| consumer.tries_max(u32::MAX));
    let messages = [
        ("1", "test.ok", None),
        ("2", "test.fails", None),
        ("3", "test.new", None),
        ("1", "test.ok", None),
        ("4", "test.fails_twice", None),
    ];
    let response = endless.consumer.batch(batch(&messages), &town.router(), within(6 * LEASE / 5)).await;
    assert_eq!(failed(&response), ["2"], "it is tried as long as there is time");
    assert_eq!(town.effects.attempts("1"), [1]);
    assert_eq!(town.effects.attempts("4"), [1, 2, 3]);
    assert_eq!(town.dead().await, ["unknown_type"]);
    let limited = batch(&[("5", "test.fails", None)]);
    let response = town.consumer.batch(limited, &town.router(), within(40 * MINUTE)).await;
    assert_eq!((failed(&response).len(), town.effects.attempts("5").len()), (0, 8));
    assert_eq!(town.dead().await, ["failed", "unknown_type"]);
}

#[tokio::test(start_paused = true)]
async fn v_11_behind_a_message_that_comes_again_its_group_comes_again() {
    let town = Town::new().with(|consumer| consumer.tries_max(u32::MAX));
    let messages = [
        ("a1", "test.ok", Some("a")),
        ("a2", "test.fails", Some("a")),
        ("a3", "test.ok", Some("a")),
        ("b1", "test.ok", Some("b")),
        ("a4", "test.ok", Some("a")),
        ("b2", "test.ok", Some("b")),
    ];
    let response = town.consumer.batch(batch(&messages), &town.router(), within(LEASE)).await;
    assert_eq!(failed(&response), ["a2", "a3", "a4"]);
    assert_eq!(town.effects.attempts("a3").len() + town.effects.attempts("a4").len(), 0);
    assert_eq!((town.effects.attempts("a1"), town.effects.attempts("b2")), (vec![1], vec![1]));
}

/// An invocation was killed. The next one waits for its lease in place, and takes over.
#[tokio::test(start_paused = true)]
async fn v_04_a_busy_key_is_waited_for_in_place() {
    let town = Town::new();
    let killed = town.clone();
    let killed_batch = tokio::spawn(async move {
        killed.consumer.batch(batch(&[("1", "test.slow", None)]), &killed.router(), within(MINUTE)).await
    });
    town.effects.began().await;
    town.faulty.crash();
    killed_batch.abort();
    let next = town.second(|consumer| consumer);
    let next = tokio::spawn(async move {
        next.consumer.batch(batch(&[("1", "test.slow", None)]), &next.router(), within(2 * LEASE)).await
    });
    town.effects.began().await;
    town.effects.both_go_on().await;
    assert_eq!(failed(&next.await.unwrap()).len(), 0);
    assert_eq!(town.effects.attempts("1"), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_held_beyond_the_end_of_the_invocation() {
    let town = Town::new();
    let began = tokio::time::Instant::now();
    let slow = batch(&[("1", "test.slow", None), ("2", "test.ok", None)]);
    let response = town.consumer.batch(slow, &town.router(), within(LEASE)).await;
    assert_eq!(failed(&response), ["1"]);
    assert!(began.elapsed() < LEASE);
}

#[tokio::test(start_paused = true)]
async fn one_event_of_an_invocation_has_an_outcome_or_comes_again() {
    let town = Town::new();
    let invoke = |kind: &str| {
        let (town, event) = (town.clone(), event(kind, kind));
        async move { town.consumer.invoke(event, &town.router(), within(LEASE)).await }
    };
    assert_eq!(invoke("test.ok").await, Ok(Handled::Ran));
    assert_eq!(invoke("test.ok").await, Ok(Handled::Duplicate));
    assert_eq!(invoke("test.refused").await, Ok(Handled::Dead));
    assert_eq!(invoke("test.slow").await, Err(NotHandled));
}
