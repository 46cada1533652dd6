//! The option `principal`: one source, or several in order.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::http::scope::Principal;

/// One source of the principal, or several in order.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "expected a text such as \"header:NAME\", or a list of such texts")]
pub enum PrincipalNames {
    /// One.
    One(String),
    /// The first source that has a value counts.
    Several(Vec<String>),
}

impl PrincipalNames {
    pub(in crate::http) fn of(principal: &Principal) -> Self {
        match principal.sources() {
            [one] => Self::One(one.to_string()),
            several => Self::Several(several.iter().map(ToString::to_string).collect()),
        }
    }

    fn principal(&self) -> Result<Principal, String> {
        let parsed = |text: &String| text.parse().map_err(|error| format!("{text:?}: {error}"));
        let texts = match self {
            Self::One(text) => return parsed(text),
            Self::Several(texts) => texts,
        };
        if texts.is_empty() {
            return Err("name at least one source, or set `principal = \"none\"`".to_owned());
        }
        let sources = texts.iter().map(parsed).collect::<Result<Vec<Principal>, _>>()?;
        if sources.len() > 1 && sources.iter().any(|source| matches!(source, Principal::None)) {
            return Err("`none` is not a source for a list; leave it out".to_owned());
        }
        Ok(Principal::first_of(sources))
    }
}

impl<'de> Deserialize<'de> for Principal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        PrincipalNames::deserialize(deserializer)?.principal().map_err(serde::de::Error::custom)
    }
}

impl Serialize for Principal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        PrincipalNames::of(self).serialize(serializer)
    }
}
