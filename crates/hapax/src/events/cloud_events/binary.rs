//! Binary mode: attributes in headers, data in the body.

use bytes::Bytes;

use super::attributes::{Attributes, extension};
use super::{Binding, CONTENT_TYPE, Mode, json};
use crate::events::envelope::EnvelopeError;
use crate::events::event::Event;
use crate::events::headers::Headers;
use crate::header_value;

/// The name of the attribute that most bindings write as the content type of the message.
const DATA_CONTENT_TYPE: &str = "datacontenttype";

pub(super) fn read(
    binding: Binding,
    headers: Vec<(&str, &[u8])>,
    data: Bytes,
) -> Result<Option<Event>, EnvelopeError> {
    let content_type = content_type(&headers)?;
    let others = |event: Event| {
        let is_other =
            |name: &str| binding.attribute(name).is_none() && !name.eq_ignore_ascii_case(CONTENT_TYPE);
        headers
            .iter()
            .filter(|(name, _)| is_other(name))
            .fold(event, |event, (name, value)| event.header(*name, Bytes::copy_from_slice(value)))
    };
    match content_type.as_deref().map_or(Mode::Binary, Mode::of) {
        // Attributes in the headers are copies of those in the body.
        Mode::Json => Ok(Some(others(json::read_json(&data)?))),
        Mode::Batch | Mode::Unsupported => Err(EnvelopeError::Format),
        Mode::Binary => {
            let is_event = |(name, _): &(&str, &[u8])| {
                binding.attribute(name).is_some_and(|name| name.eq_ignore_ascii_case("specversion"))
            };
            if !headers.iter().any(is_event) {
                return Ok(None);
            }
            let event = attributes(binding, &headers, content_type)?.into_event()?;
            Ok(Some(others(event.data(data))))
        }
    }
}

/// The content type of the message, in any case of the header's name.
fn content_type(headers: &[(&str, &[u8])]) -> Result<Option<String>, EnvelopeError> {
    let mut values = headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(CONTENT_TYPE));
    let Some((_, value)) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(EnvelopeError::repeated(CONTENT_TYPE));
    }
    match std::str::from_utf8(value) {
        Ok(value) => Ok(Some(value.to_owned())),
        Err(_) => Err(EnvelopeError::invalid(CONTENT_TYPE, "is not UTF-8")),
    }
}

fn attributes(
    binding: Binding,
    headers: &[(&str, &[u8])],
    mut content_type: Option<String>,
) -> Result<Attributes, EnvelopeError> {
    let mut attributes = Attributes::default();
    for (header, value) in headers {
        let Some(name) = binding.attribute(header) else {
            continue;
        };
        let name = name.to_ascii_lowercase();
        let value = match binding.is_encoded() {
            true => header_value::decode(value),
            false => std::str::from_utf8(value).ok().map(str::to_owned),
        };
        let Some(value) = value else {
            return Err(EnvelopeError::invalid(name, "is not UTF-8 in the encoding of its protocol"));
        };
        if name == DATA_CONTENT_TYPE {
            // In NATS this is its place. Elsewhere it is the message's own, and a second one may only repeat it.
            let own = content_type.take();
            if binding != Binding::Nats && own.is_some_and(|own| own != value) {
                return Err(EnvelopeError::invalid(name, "differs from the content type of the message"));
            }
        }
        attributes.add(name, value)?;
    }
    if let Some(content_type) = content_type {
        attributes.add(DATA_CONTENT_TYPE.to_owned(), content_type)?;
    }
    Ok(attributes)
}

pub(super) fn write(binding: Binding, event: &Event) -> Result<Headers, EnvelopeError> {
    let mut headers = Headers::default();
    for (name, value) in Attributes::of(event)?.into_vec() {
        if name == DATA_CONTENT_TYPE && binding != Binding::Nats {
            if Mode::of(&value) != Mode::Binary {
                let why = "is that of an envelope, so the message would be read as one";
                return Err(EnvelopeError::invalid(name, why));
            }
            headers.append(CONTENT_TYPE.to_owned(), value.into());
            continue;
        }
        let value = if binding.is_encoded() { header_value::encode(&value) } else { value };
        headers.append(format!("{}{name}", binding.prefix()), value.into());
    }
    for (name, value) in event.headers.iter() {
        if extension(name).is_none() && !name.eq_ignore_ascii_case(CONTENT_TYPE) {
            headers.append(name.to_owned(), Bytes::copy_from_slice(value));
        }
    }
    Ok(headers)
}
