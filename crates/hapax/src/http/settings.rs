//! [`Settings`]: a route's policy as it is written in a file. One table of names, for the sidecar, for
//! `spec/cases/http` and for the published policy.

mod span;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use hapax_core::{JsonPointer, KeyFormat, KeyRules, OnLapse, Select};
use http::{HeaderName, Method, StatusCode};
use serde::{Deserialize, Serialize};

pub use self::span::{Span, SpanError};
use super::classify::Outcome;
use super::dialect::Dialect;
use super::fingerprint::What;
use super::key_source::FirstSent;
use super::policy::{Classifier, EarlyData, HttpPolicy, KeyMode, OnStoreError};
use super::problem::Code;
use super::scope::{Anonymous, Endpoint, Principal};
use crate::policy::ExpiredKeys;

/// The options of a route, each under the name it has in files. What is not said stays as the dialect has it.
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
    pub fingerprint: Option<Counted>,
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
    pub on_lapse: Option<Lapse>,
    pub attempts_max: Option<u32>,
    pub expired_keys: Option<Expired>,
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
    pub webhook_secrets: Option<Vec<String>>,
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
pub enum Counted {
    /// The key and what is asked for.
    Request,
    /// The key alone.
    Key,
}

/// What a lapsed lease means.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Lapse {
    /// Nobody knows whether it happened.
    Uncertain,
    /// It may run again.
    Rerun,
}

/// What to do with keys older than records are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Expired {
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

fn wrong(option: &'static str, why: impl fmt::Display) -> SettingsError {
    SettingsError { option, why: why.to_string() }
}

fn parsed<T>(option: &'static str, text: &str) -> Result<T, SettingsError>
where
    T: FromStr,
    T::Err: fmt::Display,
{
    text.parse().map_err(|error| wrong(option, format_args!("{text:?}: {error}")))
}

fn all<T>(option: &'static str, texts: &[String]) -> Result<Vec<T>, SettingsError>
where
    T: FromStr,
    T::Err: fmt::Display,
{
    texts.iter().map(|text| parsed(option, text)).collect()
}

impl Settings {
    /// The policy that this describes.
    ///
    /// # Errors
    /// When an option makes no sense, or needs a feature that is not compiled in.
    pub fn policy(&self) -> Result<HttpPolicy, SettingsError> {
        let mut policy = HttpPolicy::of(self.dialect.unwrap_or_default());
        self.set_webhook(&mut policy)?;
        self.set_key(&mut policy)?;
        self.set_scope(&mut policy)?;
        self.set_fingerprint(&mut policy)?;
        self.set_engine(&mut policy);
        self.set_outcomes(&mut policy)?;
        self.set_replay(&mut policy)?;
        self.set_refusals(&mut policy)?;
        Ok(policy)
    }

    fn set_key(&self, policy: &mut HttpPolicy) -> Result<(), SettingsError> {
        set(&mut policy.key, self.key);
        if let Some(methods) = &self.methods {
            let methods: Vec<Method> = all("methods", methods)?;
            if let Some(safe) = methods.iter().find(|method| method.is_safe() || **method == Method::CONNECT)
            {
                return Err(wrong("methods", format_args!("{safe} is never covered")));
            }
            policy.methods = methods;
        }
        let source = &mut policy.key_source;
        if let Some(header) = &self.header {
            source.header = parsed("header", header)?;
        }
        if let Some(aliases) = &self.aliases {
            source.aliases = all("aliases", aliases)?;
        }
        if let Some(pointer) = &self.key_pointer {
            source.pointer = Some(parsed::<JsonPointer>("key_pointer", pointer)?);
        }
        match (&self.first_sent, self.first_sent_window) {
            (Some(header), window) => {
                let window = window.map_or(std::time::Duration::from_secs(300), |window| window.0);
                source.first_sent = Some(FirstSent { header: parsed("first_sent", header)?, window });
            }
            (None, Some(window)) => match &mut source.first_sent {
                Some(first_sent) => first_sent.window = window.0,
                None => return Err(wrong("first_sent_window", "it says nothing without `first_sent`")),
            },
            (None, None) => {}
        }
        let mut rules = source.rules.clone();
        match self.key_spelling {
            Some(KeySpelling::Quoted) => rules = rules.strict(),
            Some(KeySpelling::Any) => rules = KeyRules::new(),
            None => {}
        }
        if let Some(length_min) = self.key_length_min {
            rules = rules.length_min(length_min);
        }
        if let Some(length_max) = self.key_length_max {
            rules = rules.length_max(length_max);
        }
        match self.key_format {
            Some(KeyFormatName::Any) => rules = rules.format(KeyFormat::Any),
            Some(KeyFormatName::Uuid) => rules = rules.format(KeyFormat::Uuid),
            Some(KeyFormatName::UuidV7) => rules = rules.format(KeyFormat::UuidV7),
            Some(KeyFormatName::Ulid) => rules = rules.format(KeyFormat::Ulid),
            None => {}
        }
        if let Some(pattern) = &self.key_pattern {
            rules = rules.format(key_pattern(pattern)?);
        }
        source.rules = rules;
        Ok(())
    }

    fn set_scope(&self, policy: &mut HttpPolicy) -> Result<(), SettingsError> {
        let scope = &mut policy.scope;
        if let Some(namespace) = &self.namespace {
            scope.namespace = namespace.as_str().into();
        }
        if let Some(principal) = &self.principal {
            scope.principal = principal_of(principal, self.principal_verified.unwrap_or(false))?;
        }
        set(&mut scope.anonymous, self.anonymous);
        set(&mut scope.endpoint, self.endpoint);
        set(&mut scope.host, self.scope_host);
        Ok(())
    }

    fn set_fingerprint(&self, policy: &mut HttpPolicy) -> Result<(), SettingsError> {
        if let Some(headers) = &self.fingerprint_headers {
            let rules = policy.fingerprint.clone().headers(all("fingerprint_headers", headers)?);
            policy.fingerprint = rules.map_err(|error| wrong("fingerprint_headers", error))?;
        }
        let rules = &mut policy.fingerprint;
        if let Some(counted) = self.fingerprint {
            rules.what = match counted {
                Counted::Request => What::Request,
                Counted::Key => What::Key,
            };
        }
        let pointers = |option, texts: &Option<Vec<String>>| all(option, texts.as_deref().unwrap_or(&[]));
        if self.json_include.is_some() || self.json_exclude.is_some() {
            rules.json = Select {
                include: pointers("json_include", &self.json_include)?.into_iter().collect(),
                exclude: pointers("json_exclude", &self.json_exclude)?.into_iter().collect(),
            };
        }
        set(&mut policy.body_bytes_max, self.body_bytes_max);
        if self.decode == Some(true) {
            #[cfg(not(feature = "decode"))]
            return Err(wrong("decode", "this build cannot decode; it needs the feature `decode`"));
            #[cfg(feature = "decode")]
            {
                let mut limits = super::DecodeLimits::default();
                set(&mut limits.bytes_max, self.decode_bytes_max);
                set(&mut limits.ratio_max, self.decode_ratio_max);
                policy.fingerprint.decode = Some(limits);
            }
        }
        Ok(())
    }

    fn set_engine(&self, policy: &mut HttpPolicy) {
        let mut engine = policy.engine;
        let mut apply =
            |span: Option<Span>, change: fn(crate::Policy, std::time::Duration) -> crate::Policy| {
                if let Some(Span(span)) = span {
                    engine = change(engine, span);
                }
            };
        apply(self.retention, crate::Policy::retention);
        apply(self.uncertain_retention, crate::Policy::uncertain_retention);
        apply(self.lease, crate::Policy::lease);
        apply(self.wait, crate::Policy::wait);
        apply(self.deadline, crate::Policy::deadline);
        apply(self.run_max, crate::Policy::run_max);
        if let Some(lapse) = self.on_lapse {
            engine = engine.on_lapse(match lapse {
                Lapse::Uncertain => OnLapse::Uncertain,
                Lapse::Rerun => OnLapse::Rerun,
            });
        }
        if let Some(attempts_max) = self.attempts_max {
            engine = engine.attempts_max(attempts_max);
        }
        if let Some(expired) = self.expired_keys {
            engine = engine.expired_keys(match expired {
                Expired::Run => ExpiredKeys::Run,
                Expired::Reject => ExpiredKeys::Refuse,
            });
        }
        if let Some(bytes) = self.outcome_bytes_max {
            engine = engine.outcome_bytes_max(bytes);
        }
        policy.engine = engine;
        set(&mut policy.on_store_error, self.on_store_error);
        set(&mut policy.early_data, self.early_data);
    }

    fn set_outcomes(&self, policy: &mut HttpPolicy) -> Result<(), SettingsError> {
        let lists = [
            ("pin", &self.pin, Outcome::Pin),
            ("release", &self.release, Outcome::Release),
            ("uncertain", &self.uncertain, Outcome::Uncertain),
        ];
        for (option, statuses, outcome) in lists {
            for statuses in all(option, statuses.as_deref().unwrap_or(&[]))? {
                policy.outcomes.set(statuses, outcome);
            }
        }
        set(&mut policy.classifier, self.classifier);
        if self.grpc == Some(true) {
            policy.classifier = Classifier::Grpc;
        }
        Ok(())
    }

    fn set_replay(&self, policy: &mut HttpPolicy) -> Result<(), SettingsError> {
        let replay = &mut policy.replay;
        if let Some(marker) = &self.replay_marker {
            replay.marker = parsed("replay_marker", marker)?;
        }
        set(&mut replay.mark_first, self.mark_first);
        if let Some(echo_key) = self.echo_key {
            replay.echo_key = echo_key.then(|| policy.key_source.header.clone());
        }
        set(&mut replay.set_cookie, self.replay_set_cookie);
        if let Some(drop) = &self.replay_headers_drop {
            replay.drop = all("replay_headers_drop", drop)?;
        }
        if let Some(only) = &self.replay_headers_only {
            replay.only = Some(all("replay_headers_only", only)?);
        }
        Ok(())
    }

    fn set_refusals(&self, policy: &mut HttpPolicy) -> Result<(), SettingsError> {
        for (code, status) in self.statuses.iter().flatten() {
            let code = Code::ALL.iter().find(|known| known.name() == code);
            let code = code.ok_or_else(|| wrong("statuses", "no problem has that name"))?;
            let status = StatusCode::from_u16(*status).map_err(|error| wrong("statuses", error))?;
            policy.refusals.statuses.push((*code, status));
        }
        if let Some(hint) = &self.retry_hint {
            policy.refusals.hints = vec![parsed::<HeaderName>("retry_hint", hint)?];
        }
        let limits = &mut policy.limits;
        if let Some(rate) = &self.attempts_per_key {
            limits.attempts_per_key = Some(parsed("attempts_per_key", rate)?);
        }
        limits.open_claims_max = self.open_claims_max.or(limits.open_claims_max);
        limits.stored_bytes_max = self.stored_bytes_max.or(limits.stored_bytes_max);
        Ok(())
    }

    #[cfg(not(feature = "webhook"))]
    fn set_webhook(&self, _policy: &mut HttpPolicy) -> Result<(), SettingsError> {
        match self.webhook {
            Some(_) => Err(wrong("webhook", "this build receives none; it needs the feature `webhook`")),
            None => Ok(()),
        }
    }

    #[cfg(feature = "webhook")]
    fn set_webhook(&self, policy: &mut HttpPolicy) -> Result<(), SettingsError> {
        use super::webhook::Webhook;
        let Some(webhook) = self.webhook else { return Ok(()) };
        let secrets = self.webhook_secrets.as_deref().unwrap_or(&[]);
        let webhook = match webhook {
            WebhookName::Standard => Webhook::standard(secrets),
            WebhookName::GitHub => Webhook::github(secrets),
            WebhookName::Stripe => Webhook::stripe(secrets),
            WebhookName::CloudEvents => Ok(Webhook::cloud_events()),
        };
        policy.set_webhook(webhook.map_err(|error| wrong("webhook_secrets", error))?);
        Ok(())
    }
}

fn set<T: Copy>(place: &mut T, said: Option<T>) {
    if let Some(said) = said {
        *place = said;
    }
}

#[cfg(feature = "regex")]
fn key_pattern(pattern: &str) -> Result<KeyFormat, SettingsError> {
    let pattern =
        regex::Regex::new(&format!("^(?:{pattern})$")).map_err(|error| wrong("key_pattern", error))?;
    let admits = std::sync::Arc::new(move |key: &str| pattern.is_match(key));
    Ok(KeyFormat::Custom { expected: "of the form that is asked for here", admits })
}

#[cfg(not(feature = "regex"))]
fn key_pattern(_pattern: &str) -> Result<KeyFormat, SettingsError> {
    Err(wrong("key_pattern", "this build has no regular expressions; it needs the feature `regex`"))
}

/// Who somebody says to be counts only when somebody in front has checked it (S-02).
fn principal_of(text: &str, is_verified: bool) -> Result<Principal, SettingsError> {
    let principal: Principal = parsed("principal", text)?;
    if principal.must_be_verified() && !is_verified {
        return Err(wrong("principal", "say `principal_verified = true` when somebody in front checks it"));
    }
    Ok(principal)
}
