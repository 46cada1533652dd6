//! One attempt, for loops that talk to their broker themselves.

use hapax::core::{KeyError, State};
use hapax::events::Event;
use hapax::{Fail, OnceError};

use super::town::{Town, event};

#[tokio::test(start_paused = true)]
async fn v_03_process_returns_the_result_of_an_earlier_attempt() {
    let town = Town::new();
    let process = async |event: Event| {
        let effects = town.effects.clone();
        let counted = event.clone();
        town.consumer
            .process(&event, move |cx| async move {
                effects.happen(&counted, &cx);
                Ok::<_, String>(cx.effect_key("card").as_str().to_owned())
            })
            .await
            .unwrap()
    };
    let first = process(event("a", "1")).await;
    let copy = process(event("a", "1").header("trace", "another")).await;
    assert!(
        (first.replayed, first.recorded) == (false, true) && (copy.replayed, copy.recorded) == (true, true)
    );
    assert_eq!(first.value, copy.value);
    assert_eq!(town.effects.counts(), [1]);
}

#[tokio::test(start_paused = true)]
async fn v_06_process_reports_another_event_under_the_same_key() {
    let town = Town::new();
    let process = |event: Event| {
        let consumer = town.consumer.clone();
        async move { consumer.process(&event, |_cx| async { Ok::<_, String>(1) }).await }
    };
    process(event("a", "1")).await.unwrap();
    assert!(matches!(process(event("b", "1")).await, Err(OnceError::Mismatch)));
    assert!(matches!(process(Event::new("a").data("x")).await, Err(OnceError::Key(KeyError::Empty))));
    assert_eq!(town.states().await, [State::Completed], "and records nothing about it");
}

#[tokio::test(start_paused = true)]
async fn v_05_process_counts_tries_and_records_the_dead_letter() {
    let town = Town::new().with(|consumer| consumer.tries_max(2));
    let event = event("a", "1");
    let fails = || town.consumer.process(&event, |_cx| async { Err::<u32, _>("no".to_owned()) });
    assert!(matches!(fails().await, Err(OnceError::Failed(error)) if error == "no"));
    assert_eq!(town.states().await, [State::Released]);
    assert!(matches!(fails().await, Err(OnceError::Failed(_))));
    assert_eq!(town.dead().await, ["failed"]);
    let Err(OnceError::PreviouslyFailed(error)) = fails().await else { panic!("it is recorded") };
    assert_eq!(error.message, "no");
    assert_eq!(error.data, Some(serde_json::json!({ "dead_letter": "failed" })));
}

#[tokio::test(start_paused = true)]
async fn v_05_a_permanent_failure_of_process_keeps_the_event() {
    let town = Town::new();
    let event = event("a", "1");
    let refused = town
        .consumer
        .process(&event, |_cx| async { Err::<u32, _>(Fail::permanent("no such order".to_owned())) });
    assert!(matches!(refused.await, Err(OnceError::Failed(_))));
    let letters = town.dead_letters().await;
    assert!(letters.len() == 1 && letters[0].event == event);
}
