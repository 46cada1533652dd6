//! [`Settings`]: a route's policy as it is written in a file. One table of names, for everybody who reads or writes
//! policies as text.
//!
//! `settings/apply.rs` makes a policy of settings, with `settings/check.rs` for single values; `settings/effective.rs`
//! goes the other way. None of them knows where the text comes from.

mod apply;
mod check;
mod effective;
mod span;

use std::collections::BTreeMap;
use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

pub use self::span::{Span, SpanError};
use super::dialect::Dialect;
use super::policy::{Classifier, EarlyData, KeyMode, OnStoreError};
use super::scope::{Anonymous, Endpoint};

/// The options of a route, each under the name it has in files. What is not said stays as the dialect has it.
///
/// An option that makes no sense is refused, and so is one that would change nothing because another is missing.
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
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs, reason = "the names are those of HttpPolicy's methods, which say what each means")]
pub struct Settings {
    pub dialect: Option<Dialect>,
    pub key: Option<KeyMode>,
    pub methods: Option<Vec<String>>,
    pub header: Option<String>,
    pub aliases: Option<Vec<String>>,
    pub key_pointer: Option<String>,
    pub key_spelling: Option<KeySpelling>,
    pub key_length_min: Option<usize>,
    pub key_length_max: Option<usize>,
    pub key_format: Option<KeyFormatName>,
    pub key_pattern: Option<String>,
    pub first_sent: Option<String>,
    pub first_sent_window: Option<Span>,
    pub namespace: Option<String>,
    pub principal: Option<String>,
    pub principal_verified: Option<bool>,
    pub anonymous: Option<Anonymous>,
    pub endpoint: Option<Endpoint>,
    pub scope_host: Option<bool>,
    pub fingerprint: Option<FingerprintName>,
    pub fingerprint_headers: Option<Vec<String>>,
    pub json_include: Option<Vec<String>>,
    pub json_exclude: Option<Vec<String>>,
    pub decode: Option<bool>,
    pub decode_bytes_max: Option<usize>,
    pub decode_ratio_max: Option<usize>,
    pub body_bytes_max: Option<usize>,
    pub retention: Option<Span>,
    pub uncertain_retention: Option<Span>,
    pub lease: Option<Span>,
    pub wait: Option<Span>,
    pub deadline: Option<Span>,
    pub run_max: Option<Span>,
    pub on_lapse: Option<OnLapseName>,
    pub attempts_max: Option<u32>,
    pub expired_keys: Option<ExpiredKeysName>,
    pub on_store_error: Option<OnStoreError>,
    pub pin: Option<Vec<String>>,
    pub release: Option<Vec<String>>,
    pub uncertain: Option<Vec<String>>,
    pub classifier: Option<Classifier>,
    pub outcome_bytes_max: Option<usize>,
    pub replay_marker: Option<String>,
    pub mark_first: Option<bool>,
    pub echo_key: Option<bool>,
    pub replay_set_cookie: Option<bool>,
    pub replay_headers_drop: Option<Vec<String>>,
    pub replay_headers_only: Option<Vec<String>>,
    pub early_data: Option<EarlyData>,
    pub statuses: Option<BTreeMap<String, u16>>,
    pub retry_hint: Option<String>,
    pub attempts_per_key: Option<String>,
    pub open_claims_max: Option<u32>,
    pub stored_bytes_max: Option<u64>,
    pub grpc: Option<bool>,
    pub webhook: Option<WebhookName>,
    #[serde(skip_serializing)]
    pub webhook_secrets: Option<WebhookSecrets>,
}

/// In which spelling keys are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KeySpelling {
    /// Quoted or bare.
    Any,
    /// Quoted only.
    Quoted,
}

/// What keys must look like.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
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

/// What makes two requests the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FingerprintName {
    /// The key and what is asked for.
    Request,
    /// The key alone.
    Key,
}

/// What a lapsed lease means.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OnLapseName {
    /// Nobody knows whether it happened.
    Uncertain,
    /// It may run again.
    Rerun,
}

/// What to do with keys older than records are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ExpiredKeysName {
    /// Run them as new.
    Run,
    /// Refuse them.
    Reject,
}

/// Whose webhooks are received.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WebhookName {
    /// Standard Webhooks.
    Standard,
    /// GitHub.
    GitHub,
    /// Stripe.
    Stripe,
    /// CloudEvents.
    CloudEvents,
}

/// The secrets that webhooks are signed with. They are read from a file and shown to nobody: not by `Debug`, not by
/// an error, not by whatever the settings are written to.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct WebhookSecrets(pub Vec<String>);

impl fmt::Debug for WebhookSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebhookSecrets({})", self.0.len())
    }
}

impl<'de> Deserialize<'de> for WebhookSecrets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The error of serde would show what it found.
        let secrets = Vec::deserialize(deserializer);
        secrets.map(Self).map_err(|_| D::Error::custom("`webhook_secrets` is not a list of texts"))
    }
}

/// Which option makes no sense, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SettingsError {
    /// The option's name.
    pub option: &'static str,
    why: String,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.option, self.why)
    }
}

impl std::error::Error for SettingsError {}

#[cfg(test)]
mod tests;
