//! The timeline of a record: past and future events, in words.

use hapax_core::{Reason, State, Timestamp};

use crate::time::{relative, rfc3339};
use crate::view::RecordView;

/// A past or future event.
#[derive(PartialEq, Eq, Debug)]
pub struct Event {
    /// When it happens.
    pub at: Timestamp,
    /// What happens.
    pub what: String,
}

impl Event {
    /// The event as one line of text.
    pub fn line(&self, now: Timestamp) -> String {
        let at = rfc3339(self.at).unwrap_or_else(|| "never".to_owned());
        format!("{at:<24}  {:<12}  {}", relative(self.at, now), self.what)
    }
}

/// The known events of a record, in order.
pub fn timeline(record: &RecordView, now: Timestamp) -> Vec<Event> {
    let attempt = record.attempt;
    let event = |at, what: String| Event { at, what };
    let changed = |what: String| event(record.updated(), what);
    let created = Timestamp::from_millis(record.created_at_ms);
    let mut events = vec![event(created, "first claimed".to_owned())];
    match (record.state(), record.lease_until_ms.map(Timestamp::from_millis)) {
        (_, Some(lease_until)) => {
            if attempt > 1 {
                events.push(changed(format!("claimed by attempt {attempt}")));
            }
            events.push(event(
                lease_until,
                if lease_until <= now {
                    format!("lease of attempt {attempt} lapsed: it is unknown whether the operation happened")
                } else {
                    "the lease ends unless its owner renews it".to_owned()
                },
            ));
        }
        (State::Completed | State::Failed, None) => {
            let class = record.recorded.as_ref().map_or("unknown", |recorded| recorded.class.name());
            events.push(changed(format!("pinned after attempt {attempt}, class {class}")));
        }
        (State::Uncertain | State::InProgress, None) => {
            let why =
                record.reason.map_or("the reason is not recorded", |reason| Reason::from(reason).words());
            events.push(changed(format!("uncertain: {why}")));
        }
        (State::Released, None) => events.push(changed(match record.recorded {
            Some(_) => format!("attempt {attempt} released the key after an answer that asks for a retry"),
            None => format!("the key was released: attempt {attempt} did nothing"),
        })),
    }
    events.push(event(record.expires(), end_words(record, now)));
    events
}

fn end_words(record: &RecordView, now: Timestamp) -> String {
    let over = record.expires() <= now;
    let words = match (record.state(), over) {
        (State::InProgress | State::Uncertain, false) => "a sweep removes the record unless it is settled",
        (State::InProgress | State::Uncertain, true) => "due: the next sweep removes the record",
        (State::Released, false) => "the tombstone ends",
        (State::Completed | State::Failed, false) => "the retention ends and the key is free",
        (_, true) => "the retention is over: the key is free, a sweep removes the record",
    };
    words.to_owned()
}

#[cfg(test)]
mod tests;
