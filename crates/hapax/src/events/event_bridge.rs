//! Events of [Amazon EventBridge](https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-events-structure.html).
//!
//! | member | in an [`Event`] |
//! |---|---|
//! | `id`, `source`, `detail-type`, `time` | `id`, `source`, `kind`, `time` |
//! | `detail` | `data`, with the content type `application/json` |
//! | any other one, such as `account`, `region` and `resources` | the header `aws-account`: a string as text, anything else as JSON |
//!
//! The id is made by EventBridge when it accepts an event. A producer that sends an event again gets another id; let it
//! put an id of its own into the detail, and make it the event's [key](Event::key) before the consumer gets it.

use bytes::Bytes;
use serde_json::value::RawValue;

use super::envelope::{EnvelopeError, Members, NAME_LENGTH_MAX, check_value, is_time};
use super::event::Event;

/// The only known version of the envelope.
const VERSION: &str = "0";

/// The prefix of the headers in an [`Event`] that hold the other members.
const PREFIX: &str = "aws-";

/// Reads an event.
///
/// ```
/// use hapax::events::event_bridge;
///
/// let event = event_bridge::read(br#"{
///     "version": "0", "id": "7bf73129-1428-4cd3-a780-95db273d1602", "detail-type": "order.paid", "source": "shop.orders",
///     "account": "123456789012", "time": "2026-11-19T08:30:00Z", "region": "eu-central-1", "resources": [],
///     "detail": { "order": "order-123" }
/// }"#)?;
/// assert_eq!(event.kind, "order.paid");
/// assert_eq!(event.headers.text("aws-region"), Some("eu-central-1"));
/// # Ok::<(), hapax::events::EnvelopeError>(())
/// ```
///
/// # Errors
/// [`EnvelopeError`] when it is not one.
pub fn read(json: &[u8]) -> Result<Event, EnvelopeError> {
    let members = Members::read(json)?;
    match members.text("version")? {
        None => return Err(EnvelopeError::missing("version")),
        Some(version) if version != VERSION => {
            return Err(EnvelopeError::Version { attribute: "version", supported: VERSION });
        }
        Some(_) => {}
    }
    let required = |name: &'static str| {
        let text = members.required(name)?;
        check_value(name, &text).map(|()| text)
    };
    let event = Event::new(required("detail-type")?).source(required("source")?).id(required("id")?);
    let detail = members.get("detail").ok_or_else(|| EnvelopeError::missing("detail"))?;
    let event = event.content_type("application/json").data(Bytes::copy_from_slice(detail.get().as_bytes()));
    let event = match members.text("time")? {
        Some(time) if is_time(&time) => event.time(time),
        Some(_) => return Err(EnvelopeError::invalid("time", "is not a time of RFC 3339")),
        None => event,
    };
    let known = ["version", "id", "detail-type", "source", "time", "detail"];
    let others = members.0.iter().filter(|(name, _)| !known.contains(&&**name));
    others.into_iter().try_fold(event, |event, (name, value)| header(event, name, value))
}

/// The event with a header for a member that has no place of its own.
fn header(event: Event, name: &str, value: &RawValue) -> Result<Event, EnvelopeError> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if name.is_empty() || name.len() > NAME_LENGTH_MAX || !name.bytes().all(is_name) {
        return Err(EnvelopeError::bad_name(name));
    }
    let text = serde_json::from_str::<String>(value.get()).unwrap_or_else(|_| value.get().to_owned());
    // JSON may have line breaks between its tokens; a string may not.
    let text = if value.get().starts_with('"') { text } else { text.replace(['\r', '\n', '\t'], " ") };
    check_value(name, &text)?;
    Ok(event.header(format!("{PREFIX}{name}"), text))
}
