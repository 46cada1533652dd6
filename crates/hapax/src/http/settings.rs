//! [`Settings`]: the options of a route, for code and for files. The only list of options, with their types and names.
//!
//! Every option may be omitted. `settings/apply.rs` applies settings to the rules that
//! requests are served by, one layer after another; `settings/check.rs` validates settings from a file;
//! `settings/effective.rs` reads the options in force back from the rules.

mod apply;
mod check;
mod effective;
mod principal;
mod refusals;
pub mod size;
mod span;
mod text;
mod webhook;

use std::collections::BTreeMap;

use hapax_core::JsonPointer;
use http::{HeaderName, Method};
use serde::{Deserialize, Serialize};

pub use self::principal::PrincipalNames;
pub use self::refusals::{RefusalStatus, RefusalTemplate, Refusals};
pub use self::span::{Span, SpanError};
pub use self::text::Text;
pub use self::webhook::{
    WebhookAlgorithm, WebhookEncoding, WebhookName, WebhookScheme, WebhookSecretEncoding, WebhookSecrets,
    WebhookSender, WebhookTimeUnit,
};
use super::classify::StatusSet;
use super::dialect::Dialect;
use super::key_place::KeyPlace;
use super::limits::Rate;
use super::path::PathCase;
use super::policy::{Classifier, EarlyData, KeyMode, OnStoreError};
use super::problem::{Code, RefusalShape};
use super::scope::{Anonymous, Endpoint, Principal};

/// The options of a route, each under its name in files. An omitted option is inherited: from the dialect, then from
/// the [`Hapax`](crate::Hapax) that the layer was made of, then from the defaults.
///
/// An option with an invalid value is refused, and so is one without effect because another one is missing.
///
/// ```
/// use hapax::http::Settings;
///
/// let settings: Settings = serde_json::from_str(r#"{ "dialect": "stripe-v1", "key": "required" }"#)?;
/// let policy = settings.policy()?;
/// # let _ = policy;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The convention to start from; the other options override it.
    pub dialect: Option<Dialect>,
    /// Whether a request must have a key. Default `optional`.
    pub key: Option<KeyMode>,
    /// The covered methods, in any case. GET, HEAD, OPTIONS, TRACE and CONNECT never are.
    pub methods: Option<Vec<Text<Method>>>,
    /// The header that holds the key.
    pub header: Option<Text<HeaderName>>,
    /// All places of the key, the first that has one wins, and all that have one must agree: `header:NAME`, `query:NAME`,
    /// `json:/POINTER`, `form:NAME`. With `header` as well, that header replaces the first one of the list.
    pub key_from: Option<Vec<Text<KeyPlace>>>,
    /// The values of a JSON body from which a key is derived if the request has none, as JSON pointers. Default: none.
    pub key_derive: Option<Vec<Text<JsonPointer>>>,
    /// How long an equal request without a key counts as a retry. Default: the retention.
    pub key_derive_window: Option<Span>,
    /// Whether bare keys are accepted in addition to quoted ones, and any printable text.
    pub key_spelling: Option<KeySpelling>,
    /// The minimum length of a key.
    pub key_length_min: Option<usize>,
    /// The maximum length of a key, at most 255.
    pub key_length_max: Option<usize>,
    /// The format of keys.
    pub key_format: Option<KeyFormatName>,
    /// The regular expression that matches a whole key (feature `regex`).
    pub key_pattern: Option<String>,
    /// The header with the time at which a request was first sent.
    pub first_sent: Option<Text<HeaderName>>,
    /// The maximum age of that time. Default `5m`.
    pub first_sent_window: Option<Span>,
    /// Separates the keys of deployments that share a store.
    pub namespace: Option<String>,
    /// How the caller is identified: `credentials`, `header:NAME`, `cookie:NAME`, `jwt:CLAIM` or `none`; of a list the
    /// first that has a value.
    #[cfg_attr(feature = "schema", schemars(with = "Option<PrincipalNames>"))]
    pub principal: Option<Principal>,
    /// The headers that hold credentials.
    pub credential_headers: Option<Vec<Text<HeaderName>>>,
    /// Confirms that a component in front of this one verifies the principal. Needed for values that callers could forge.
    pub principal_verified: Option<bool>,
    /// What to do with callers without a principal.
    pub anonymous: Option<Anonymous>,
    /// How the case of letters in paths is compared. `ignore` for services that accept `/ORDERS` for `/orders`.
    pub path_case: Option<PathCase>,
    /// How the same key on another endpoint is treated.
    pub endpoint: Option<Endpoint>,
    /// Whether the host is part of the scope.
    pub scope_host: Option<bool>,
    /// Whether the request is compared, or only the key.
    pub fingerprint: Option<FingerprintName>,
    /// The request headers that count, in addition to the content type.
    pub fingerprint_headers: Option<Vec<Text<HeaderName>>>,
    /// The only values of a JSON body that count, as JSON pointers.
    pub json_include: Option<Vec<Text<JsonPointer>>>,
    /// The values of a JSON body that do not count, as JSON pointers.
    pub json_exclude: Option<Vec<Text<JsonPointer>>>,
    /// Whether compressed bodies are decoded for the fingerprint (feature `decode`).
    pub decode: Option<bool>,
    /// The maximum size of a decoded body.
    #[serde(deserialize_with = "size::deserialize_option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<size::Size>"))]
    pub decode_bytes_max: Option<usize>,
    /// The maximum number of decoded bytes per byte sent.
    pub decode_ratio_max: Option<usize>,
    /// The maximum size of a request body.
    #[serde(deserialize_with = "size::deserialize_option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<size::Size>"))]
    pub body_bytes_max: Option<usize>,
    /// How long a finished record is replayed.
    pub retention: Option<Span>,
    /// How long an unfinished record is kept for operators.
    pub uncertain_retention: Option<Span>,
    /// How long a claim is valid without renewal. At least `30ms`.
    pub lease: Option<Span>,
    /// How long a duplicate waits for the first response. `0s`: not at all.
    pub wait: Option<Span>,
    /// How long a client waits at most. The handler continues.
    pub deadline: Option<Span>,
    /// How long a run's lease is renewed.
    pub run_max: Option<Span>,
    /// What happens when a lease lapses.
    pub on_lapse: Option<OnLapseName>,
    /// With `on_lapse = "rerun"`: how many attempts in a row may lapse.
    pub attempts_max: Option<u32>,
    /// What to do with keys that were made longer ago than records are kept.
    pub expired_keys: Option<ExpiredKeysName>,
    /// What to do when the store cannot take a claim.
    pub on_store_error: Option<OnStoreError>,
    /// Statuses of final responses: `2xx`, `404`, with `grpc = true` also `NOT_FOUND`. Single statuses override
    /// classes.
    pub pin: Option<Vec<Text<StatusSet>>>,
    /// Statuses that release the key.
    pub release: Option<Vec<Text<StatusSet>>>,
    /// Statuses with which the outcome is unknown.
    pub uncertain: Option<Vec<Text<StatusSet>>>,
    /// How the outcome of a response is determined.
    pub classifier: Option<Classifier>,
    /// The maximum size of a recorded response.
    #[serde(deserialize_with = "size::deserialize_option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<size::Size>"))]
    pub outcome_bytes_max: Option<usize>,
    /// The header that marks a replay.
    pub replay_marker: Option<Text<HeaderName>>,
    /// Whether first responses carry the marker, with `false`.
    pub mark_first: Option<bool>,
    /// Whether responses echo the key.
    pub echo_key: Option<bool>,
    /// Whether cookies are stored and replayed.
    pub replay_set_cookie: Option<bool>,
    /// Response headers that are not replayed.
    pub replay_headers_drop: Option<Vec<Text<HeaderName>>>,
    /// The only replayed response headers, in addition to `Content-Type`, `Content-Encoding`, `Location` and `grpc-*`.
    pub replay_headers_only: Option<Vec<Text<HeaderName>>>,
    /// What to do with requests in TLS early data.
    pub early_data: Option<EarlyData>,
    /// The statuses of problems, by their codes: `{ "key-reused" = 400 }`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<BTreeMap<String, u16>>"))]
    pub statuses: Option<BTreeMap<Text<Code>, RefusalStatus>>,
    /// The header that states whether a retry may succeed.
    pub retry_hint: Option<Text<HeaderName>>,
    /// The format of refusals: `problem`, `stripe`, `google`, `jsonapi`, `plain`, or a table with a `media_type` and a
    /// `body` in which `{code}`, `{title}`, `{detail}`, `{status}`, `{operation}` and `{retry}` are replaced.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Refusals>"))]
    pub refusals: Option<RefusalShape>,
    /// How often one key may be sent: `10/1m`.
    pub attempts_per_key: Option<Text<Rate>>,
    /// How many operations of one principal this process runs at a time, including those whose caller has disconnected.
    /// Default 4096.
    pub open_claims_max: Option<u32>,
    /// How many bytes of responses this process stores for one principal.
    #[serde(deserialize_with = "size::deserialize_option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<size::Size>"))]
    pub stored_bytes_max: Option<u64>,
    /// Whether the route speaks gRPC.
    pub grpc: Option<bool>,
    /// The sender of the webhooks that the route receives (feature `webhook`).
    pub webhook: Option<WebhookSender>,
    /// The secrets that they are signed with.
    #[serde(skip_serializing)]
    pub webhook_secrets: Option<WebhookSecrets>,
}

/// The accepted spellings of keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum KeySpelling {
    /// Quoted or bare.
    Any,
    /// Quoted only.
    Quoted,
    /// Quoted, or any printable text unchanged.
    Raw,
}

/// The format of keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum KeyFormatName {
    /// Anything.
    Any,
    /// A UUID.
    Uuid,
    /// A UUID of version 7.
    UuidV7,
    /// A ULID.
    Ulid,
}

/// Which parts of two requests are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum FingerprintName {
    /// The key and the request.
    Request,
    /// The key alone.
    Key,
}

/// What happens when a lease lapses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum OnLapseName {
    /// The outcome is unknown, and it does not run again until its record is settled.
    Uncertain,
    /// It may run again.
    Rerun,
}

/// What to do with keys made longer ago than records are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ExpiredKeysName {
    /// Run them as new.
    Run,
    /// Refuse them.
    Refuse,
}

/// Which option is invalid, and why.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{option}`: {why}")]
pub struct SettingsError {
    /// The option's name.
    pub option: &'static str,
    why: String,
}

#[cfg(test)]
mod tests;
