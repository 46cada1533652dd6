use std::sync::Arc;

use hapax_core::{Class, Format, Recorded};
use parking_lot::Mutex;
use serde::Deserialize;

use super::*;
use crate::events::{Data, EnvelopeError, FromEvent, PermanentReason, Undecodable};
use crate::function::StoredError;
use crate::{Fail, Hapax, MemoryStore};

/// The events that handlers have seen.
type Seen = Arc<Mutex<Vec<String>>>;

#[derive(Deserialize)]
struct Paid {
    cents: u64,
}

async fn paid(seen: Seen, cx: Context, Data(paid): Data<Paid>) -> Result<u64, Fail<String>> {
    seen.lock().push(format!("{} in attempt {}", paid.cents, cx.attempt()));
    match paid.cents {
        0 => Err(Fail::permanent_with("nothing was paid".to_owned(), "no-amount")),
        1 => Err(Fail::Unknown("no answer".to_owned())),
        2 => Err("try again".to_owned())?,
        cents => Ok(cents),
    }
}

fn router(seen: &Seen) -> Router<Seen> {
    Router::new(seen.clone()).on("order.paid", paid)
}

/// How an attempt at this event ends.
async fn outcome_of(router: &Router<Seen>, event: Event) -> HandlerOutcome {
    let router = router.clone();
    let hapax = Hapax::new(MemoryStore::new());
    let outcome = Arc::new(Mutex::new(None));
    let (sender, event) = (outcome.clone(), event);
    hapax
        .once("test", "event")
        .run(move |context| async move {
            let outcome = router.call(context, event).await;
            *sender.lock() = Some(outcome);
            Ok::<_, String>(())
        })
        .await
        .unwrap();
    let outcome = outcome.lock().take();
    outcome.unwrap()
}

fn order_paid(data: &'static str) -> Event {
    Event::new("order.paid").id("1").data(data)
}

fn stored(message: &str) -> StoredError {
    StoredError { message: message.to_owned(), data: None }
}

#[tokio::test]
async fn the_handler_of_the_type_gets_its_argument_and_its_result_is_the_outcome() {
    let seen = Seen::default();
    let router = router(&seen);
    let done = outcome_of(&router, order_paid(r#"{"cents": 12}"#)).await;
    assert_eq!(done, HandlerOutcome::Done(Recorded::new(Class::Success, Format::FUNCTION, "12")));
    let error = StoredError { message: "nothing was paid".into(), data: Some("no-amount".into()) };
    assert_eq!(
        outcome_of(&router, order_paid(r#"{"cents": 0}"#)).await,
        HandlerOutcome::Permanent { reason: PermanentReason::Permanent, error }
    );
    assert_eq!(
        outcome_of(&router, order_paid(r#"{"cents": 1}"#)).await,
        HandlerOutcome::Unknown(stored("no answer"))
    );
    assert_eq!(
        outcome_of(&router, order_paid(r#"{"cents": 2}"#)).await,
        HandlerOutcome::Retry(stored("try again"))
    );
    assert_eq!(seen.lock()[0], "12 in attempt 1");
}

#[tokio::test]
async fn v_08_an_unknown_type_is_a_permanent_error() {
    let seen = Seen::default();
    let long = "x".repeat(300);
    for (kind, shown) in
        [("order.sent", "order.sent"), ("", ""), ("Order.Paid", "Order.Paid"), (&long, &long[..200])]
    {
        let outcome = outcome_of(&router(&seen), Event::new(kind)).await;
        let error = stored(&format!("no handler is registered for events of the type \"{shown}\""));
        assert_eq!(outcome, HandlerOutcome::Permanent { reason: PermanentReason::UnknownType, error });
    }
    assert!(seen.lock().is_empty());
}

#[tokio::test]
async fn v_08_other_types_are_handled_only_by_choice() {
    let seen = Seen::default();
    let router = router(&seen).otherwise(|seen: Seen, _cx: Context, event: Event| async move {
        seen.lock().push(event.kind.clone());
        Ok::<_, String>(())
    });
    outcome_of(&router, Event::new("order.sent")).await;
    outcome_of(&router, order_paid(r#"{"cents": 12}"#)).await;
    assert_eq!(*seen.lock(), ["order.sent", "12 in attempt 1"]);
}

#[tokio::test]
async fn v_08_an_argument_that_cannot_be_decoded_is_a_permanent_error() {
    let seen = Seen::default();
    for (data, why) in [
        ("", "the data is not JSON, at line 1 column 0: EOF while parsing a value at line 1 column 0"),
        (
            "{}",
            "the data is JSON of another form, at line 1 column 2: missing field `cents` at line 1 column 2",
        ),
    ] {
        assert_eq!(
            outcome_of(&router(&seen), order_paid(data)).await,
            HandlerOutcome::Permanent { reason: PermanentReason::Undecodable, error: stored(why) }
        );
    }
    assert!(seen.lock().is_empty());
}

#[tokio::test]
async fn v_13_a_message_in_an_invalid_envelope_reaches_no_handler() {
    let seen = Seen::default();
    let router = router(&seen).otherwise(paid);
    for kind in ["order.paid", ""] {
        let event = Event::new(kind).data(r#"{"cents": 12}"#);
        let event =
            event.unreadable(&EnvelopeError::missing("id")).unreadable(&EnvelopeError::missing("source"));
        assert_eq!(
            outcome_of(&router, event).await,
            HandlerOutcome::Permanent {
                reason: PermanentReason::Undecodable,
                error: stored("`source` is missing")
            }
        );
    }
    assert!(seen.lock().is_empty());
}

#[test]
fn the_text_of_an_undecodable_event_shows_nothing_of_it() {
    let undecodable = <Data<Paid>>::from_event(&order_paid(r#"{"cents": "secret"}"#)).err().unwrap();
    assert_eq!(undecodable.to_string(), "the data is JSON of another form, at line 1 column 18");
    assert!(HandlerOutcome::from(undecodable) != HandlerOutcome::from(Undecodable::new("other")));
}

#[test]
fn a_pair_decodes_both() {
    let event = order_paid(r#"{"cents": 3}"#);
    let (Data(paid), whole) = <(Data<Paid>, Event)>::from_event(&event).unwrap();
    assert_eq!((paid.cents, whole), (3, event));
    assert!(<(Event, Data<Paid>)>::from_event(&Event::new("a")).is_err());
}

#[test]
#[should_panic(expected = "events of the type \"order.paid\" have two handlers")]
fn two_handlers_of_one_type_are_refused() {
    let _ = router(&Seen::default()).on("order.paid", paid);
}

#[test]
#[should_panic(expected = "events of other types have two handlers")]
fn two_handlers_of_other_types_are_refused() {
    let _ = router(&Seen::default()).otherwise(paid).otherwise(paid);
}
