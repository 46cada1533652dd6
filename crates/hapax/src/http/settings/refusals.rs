//! The option `refusals`: the name of a shape, or a shape of one's own.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::http::problem::{RefusalShape, RefusalShapeError, RefusalShapeName};

/// What refusals look like.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Refusals {
    /// A shape that has a name.
    Named(RefusalShapeName),
    /// One's own.
    Template(RefusalTemplate),
}

/// A shape of one's own.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RefusalTemplate {
    /// The value of `Content-Type`.
    pub media_type: String,
    /// A text, or JSON with texts, in which the fields of the refusal are filled in.
    pub body: Value,
}

impl Refusals {
    pub(super) fn of(shape: &RefusalShape) -> Self {
        match shape.name() {
            Some(name) => Self::Named(name),
            None => Self::Template(RefusalTemplate {
                media_type: String::from_utf8_lossy(shape.media_type().as_bytes()).into_owned(),
                body: shape.body().clone(),
            }),
        }
    }

    pub(super) fn shape(&self) -> Result<RefusalShape, RefusalShapeError> {
        match self {
            Self::Named(name) => Ok((*name).into()),
            Self::Template(RefusalTemplate { media_type, body }) => {
                RefusalShape::template(media_type, body.clone())
            }
        }
    }
}

impl<'de> Deserialize<'de> for Refusals {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Said;

        impl<'de> Visitor<'de> for Said {
            type Value = Refusals;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a shape, or a table with `media_type` and `body`")
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Refusals, E> {
                name.parse().map(Refusals::Named).map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Refusals, A::Error> {
                let template = RefusalTemplate::deserialize(MapAccessDeserializer::new(map));
                template.map(Refusals::Template).map_err(A::Error::custom)
            }
        }
        deserializer.deserialize_any(Said)
    }
}
