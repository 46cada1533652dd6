//! [`Attributes`]: the attributes of a CloudEvent as texts, between an event and either mode.

use super::{PREFIX, VERSION};
use crate::events::envelope::{ATTRIBUTES_MAX, EnvelopeError, check_value, is_name, is_time};
use crate::events::event::Event;

/// Names and values, each name once.
#[derive(Default)]
pub(super) struct Attributes(Vec<(String, String)>);

impl Attributes {
    /// Adds an attribute. A name that was there already is refused.
    pub(super) fn add(&mut self, name: String, value: String) -> Result<(), EnvelopeError> {
        if !is_name(&name) || name == "data" {
            return Err(EnvelopeError::bad_name(&name));
        }
        if self.0.iter().any(|(own, _)| *own == name) {
            return Err(EnvelopeError::repeated(name));
        }
        if self.0.len() == ATTRIBUTES_MAX {
            return Err(EnvelopeError::TooMany);
        }
        check(&name, &value)?;
        self.0.push((name, value));
        Ok(())
    }

    /// All attributes.
    pub(super) fn into_vec(self) -> Vec<(String, String)> {
        self.0
    }

    /// The event with these attributes, without data.
    pub(super) fn into_event(mut self) -> Result<Event, EnvelopeError> {
        let mut take = |name: &'static str| {
            let at = self.0.iter().position(|(own, _)| own == name)?;
            Some(self.0.remove(at).1)
        };
        match take("specversion") {
            None => return Err(EnvelopeError::missing("specversion")),
            Some(version) if version != VERSION => {
                return Err(EnvelopeError::Version { attribute: "specversion", supported: VERSION });
            }
            Some(_) => {}
        }
        let mut required = |name: &'static str| match take(name) {
            Some(value) => Ok(value),
            None => Err(EnvelopeError::missing(name)),
        };
        let event = Event::new(required("type")?).source(required("source")?).id(required("id")?);
        let optional: [(&'static str, fn(Event, String) -> Event); 5] = [
            ("subject", |event, value| event.subject(value)),
            ("time", |event, value| event.time(value)),
            ("datacontenttype", |event, value| event.content_type(value)),
            ("partitionkey", |event, value| event.order(value)),
            ("idempotencykey", |event, value| event.key(value)),
        ];
        let event = optional.into_iter().fold(event, |event, (name, set)| match take(name) {
            Some(value) => set(event, value),
            None => event,
        });
        Ok(self
            .0
            .into_iter()
            .fold(event, |event, (name, value)| event.header(format!("{PREFIX}{name}"), value)))
    }

    /// The attributes of an event.
    pub(super) fn of(event: &Event) -> Result<Self, EnvelopeError> {
        let mut attributes = Self::default();
        attributes.write("specversion", Some(VERSION))?;
        for (name, value) in [("id", &event.id), ("source", &event.source)] {
            let value = value.as_deref().ok_or_else(|| EnvelopeError::missing(name))?;
            attributes.write(name, Some(value))?;
        }
        attributes.write("type", Some(&event.kind))?;
        attributes.write("subject", event.subject.as_deref())?;
        attributes.write("time", event.time.as_deref())?;
        attributes.write("datacontenttype", event.content_type.as_deref())?;
        attributes.write("partitionkey", event.order.as_deref())?;
        attributes.write("idempotencykey", event.key.as_deref())?;
        for (header, value) in event.headers.iter() {
            if let Some(name) = extension(header) {
                let name = name.to_ascii_lowercase();
                let Ok(value) = std::str::from_utf8(value) else {
                    return Err(EnvelopeError::invalid(name, "is not UTF-8"));
                };
                attributes.write(&name, Some(value))?;
            }
        }
        Ok(attributes)
    }

    fn write(&mut self, name: &str, value: Option<&str>) -> Result<(), EnvelopeError> {
        match value {
            Some(value) => self.add(name.to_owned(), value.to_owned()),
            None => Ok(()),
        }
    }
}

/// The extension attribute in a header of an event.
pub(super) fn extension(header: &str) -> Option<&str> {
    let (start, name) = header.split_at_checked(PREFIX.len())?;
    start.eq_ignore_ascii_case(PREFIX).then_some(name)
}

/// Refuses a value that its attribute may not have.
fn check(name: &str, value: &str) -> Result<(), EnvelopeError> {
    check_value(name, value)?;
    let is_core =
        ["id", "source", "type", "subject", "time", "datacontenttype", "dataschema"].contains(&name);
    if is_core && value.is_empty() {
        return Err(EnvelopeError::invalid(name.to_owned(), "is empty"));
    }
    if name == "time" && !is_time(value) {
        return Err(EnvelopeError::invalid("time", "is not a time of RFC 3339"));
    }
    Ok(())
}
