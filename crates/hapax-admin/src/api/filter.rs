//! Filters of records, as a query or as a JSON body.

use std::time::Duration;

use hapax_core::Query;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::failure::{Code, Failure};
use crate::records::name::{id_prefix, parse_digits, parse_key};
use crate::view::StateView;

/// The most records of one page.
pub const LIMIT_MAX: u32 = 1000;
/// The largest integer that all JSON parsers represent exactly.
const WHOLE_MAX: u64 = (1 << 53) - 1;
/// The default number of records of a page.
const LIMIT_DEFAULT: u32 = 100;

/// A filter of records, and the page to return.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Filter {
    /// Only these states.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub state: Vec<StateView>,
    /// Only this namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Only operations that start with this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// Only records whose id starts with these hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[0-9A-Fa-f]{1,64}$")]
    pub id: Option<String>,
    /// Only records of this key, in any scope. Not together with `id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[!-~]{1,255}$")]
    pub key: Option<String>,
    /// Only records that have not changed for this long.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 9007199254740991_u64)]
    pub older_than_ms: Option<u64>,
    /// Only records that changed within this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 9007199254740991_u64)]
    pub newer_than_ms: Option<u64>,
    /// The most records of a page.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000, default = 100)]
    pub limit: Option<u32>,
    /// The `next` of the previous page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// The same as a query, without the key, which must not be in a URL.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Only these states, separated by commas.
    #[serde(deserialize_with = "by_commas")]
    #[param(style = Form, explode = false, value_type = Option<Vec<StateView>>)]
    pub(crate) state: Vec<StateView>,
    /// Only this namespace.
    pub(crate) namespace: Option<String>,
    /// Only operations that start with this.
    pub(crate) operation: Option<String>,
    /// Only records whose id starts with these hexadecimal digits.
    #[param(pattern = "^[0-9A-Fa-f]{1,64}$")]
    pub(crate) id: Option<String>,
    /// Only records that have not changed for this long.
    #[param(minimum = 0, maximum = 9007199254740991_u64)]
    pub(crate) older_than_ms: Option<u64>,
    /// Only records that changed within this time.
    #[param(minimum = 0, maximum = 9007199254740991_u64)]
    pub(crate) newer_than_ms: Option<u64>,
    /// The most records of a page.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    pub(crate) limit: Option<u32>,
    /// The `next` of the previous page.
    pub(crate) cursor: Option<String>,
}

/// The record in a path.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "it describes a parameter that the `Id` extractor reads")]
pub(crate) struct RecordPath {
    /// The record's id.
    #[param(pattern = "^[0-9A-Fa-f]{64}$")]
    id: String,
}

impl From<ListQuery> for Filter {
    fn from(listing: ListQuery) -> Self {
        let ListQuery { state, namespace, operation, id, older_than_ms, newer_than_ms, limit, cursor } =
            listing;
        Self { state, namespace, operation, id, key: None, older_than_ms, newer_than_ms, limit, cursor }
    }
}

impl Filter {
    /// The query to the store.
    pub(crate) fn query(self) -> Result<Query, Failure> {
        let id_prefix = match (&self.id, &self.key) {
            (Some(_), Some(_)) => {
                return Err(Failure::new(Code::InputInvalid, "a search has an id or a key, not both")
                    .hint("leave one of them out"));
            }
            (Some(id), None) => Some(parse_digits(id)?),
            (None, Some(key)) => Some(id_prefix(&parse_key(key)?)),
            (None, None) => None,
        };
        Ok(Query {
            states: self.state.into_iter().map(Into::into).collect(),
            namespace: self.namespace,
            operation_prefix: self.operation,
            id_prefix,
            age_min: millis("older_than_ms", self.older_than_ms)?,
            age_max: millis("newer_than_ms", self.newer_than_ms)?,
            limit: within("limit", self.limit.unwrap_or(LIMIT_DEFAULT), LIMIT_MAX)?,
            cursor: self.cursor,
        })
    }
}

/// `number` if it is from 1 to `number_max`.
pub(super) fn within(name: &str, number: u32, number_max: u32) -> Result<usize, Failure> {
    if (1..=number_max).contains(&number) {
        return Ok(number as usize);
    }
    Err(Failure::new(Code::InputInvalid, format!("{name} is a number from 1 to {number_max}")))
}

/// `number` if all JSON parsers represent it exactly.
pub(super) fn whole(name: &str, number: u64) -> Result<u64, Failure> {
    if number <= WHOLE_MAX {
        return Ok(number);
    }
    Err(Failure::new(Code::InputInvalid, format!("{name} is a number up to {WHOLE_MAX}")))
}

/// A duration, if one is given.
pub(super) fn millis(name: &str, number: Option<u64>) -> Result<Option<Duration>, Failure> {
    number.map(|number| whole(name, number).map(Duration::from_millis)).transpose()
}

fn by_commas<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<StateView>, D::Error> {
    use serde::de::{Error, IntoDeserializer, value::StrDeserializer};
    let text = String::deserialize(deserializer)?;
    let state = |name: &str| {
        let name: StrDeserializer<'_, serde::de::value::Error> = name.into_deserializer();
        StateView::deserialize(name).map_err(D::Error::custom)
    };
    text.split(',').filter(|name| !name.is_empty()).map(state).collect()
}
