//! The options `refusals` (the name of a format, or a template) and `statuses`.

use std::fmt;

use http::StatusCode;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::http::problem::{RefusalShape, RefusalShapeError, RefusalShapeName};

/// The format of refusals.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Refusals {
    /// A named format.
    Named(RefusalShapeName),
    /// A format given by a template.
    Template(RefusalTemplate),
}

/// A format given by a template.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RefusalTemplate {
    /// The value of `Content-Type`.
    pub media_type: String,
    /// A text, or JSON with texts, in which the fields of the refusal are replaced.
    pub body: Value,
}

impl Refusals {
    fn of(shape: &RefusalShape) -> Self {
        match shape.name() {
            Some(name) => Self::Named(name),
            None => Self::Template(RefusalTemplate {
                media_type: String::from_utf8_lossy(shape.media_type().as_bytes()).into_owned(),
                body: shape.body().clone(),
            }),
        }
    }

    fn shape(self) -> Result<RefusalShape, RefusalShapeError> {
        match self {
            Self::Named(name) => Ok(name.into()),
            Self::Template(RefusalTemplate { media_type, body }) => RefusalShape::template(&media_type, body),
        }
    }
}

impl<'de> Deserialize<'de> for RefusalShape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Refusals::deserialize(deserializer)?.shape().map_err(serde::de::Error::custom)
    }
}

impl Serialize for RefusalShape {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Refusals::of(self).serialize(serializer)
    }
}

/// The status of a refusal: 400 to 599.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct RefusalStatus(pub(in crate::http) StatusCode);

impl RefusalStatus {
    pub(in crate::http) const BAD_REQUEST: Self = Self(StatusCode::BAD_REQUEST);
}

impl TryFrom<u16> for RefusalStatus {
    type Error = &'static str;

    fn try_from(status: u16) -> Result<Self, Self::Error> {
        let code = StatusCode::from_u16(status).ok().filter(|_| (400..600).contains(&status));
        code.map(Self).ok_or("a problem needs a status from 400 to 599")
    }
}

impl From<RefusalStatus> for u16 {
    fn from(status: RefusalStatus) -> Self {
        status.0.as_u16()
    }
}

impl<'de> Deserialize<'de> for Refusals {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RefusalsVisitor;

        impl<'de> Visitor<'de> for RefusalsVisitor {
            type Value = Refusals;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a format, or a table with `media_type` and `body`")
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Refusals, E> {
                name.parse().map(Refusals::Named).map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Refusals, A::Error> {
                let template = RefusalTemplate::deserialize(MapAccessDeserializer::new(map));
                template.map(Refusals::Template).map_err(A::Error::custom)
            }
        }
        deserializer.deserialize_any(RefusalsVisitor)
    }
}
