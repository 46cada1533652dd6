//! Validates settings from a file: values out of range, and options that contradict each other or have no effect.
//!
//! The types validate each value by itself when it is parsed.

use std::fmt;
use std::time::Duration;

use hapax_core::KeyFormat;
use hapax_core::key::KEY_LENGTH_MAX;
use http::header::COOKIE;

use super::{KeyFormatName, Settings, SettingsError, Span, Text};
use crate::http::classify::StatusSet;
use crate::http::fingerprint::NeverCounts;
use crate::http::policy::{Classifier, CodeChoices, HttpPolicy};
use crate::http::rules::Rules;
use crate::http::scope::ScopeRules;
use crate::policy::{LEASE_MIN, Policy, SPAN_MAX};

/// The minimum span in a file.
const MILLISECOND: Duration = Duration::from_millis(1);

impl Settings {
    /// The policy with these settings.
    ///
    /// # Errors
    /// When a value is out of range, when options contradict each other, when an option has no effect without another
    /// one, or when it needs a feature that is not compiled in.
    pub fn policy(self) -> Result<HttpPolicy, SettingsError> {
        self.check_key()?;
        self.check_credential_headers()?;
        self.check_fingerprint()?;
        self.check_spans()?;
        self.check_outcomes()?;
        at_least_one("attempts_max", self.attempts_max)?;
        at_least_one("open_claims_max", self.open_claims_max)?;
        at_least_one("stored_bytes_max", self.stored_bytes_max)?;
        let code = CodeChoices {
            key_format: self.key_pattern.as_deref().map(key_pattern).transpose()?,
            #[cfg(feature = "webhook")]
            webhook: self.receiver()?,
            ..CodeChoices::default()
        };
        #[cfg(not(feature = "webhook"))]
        self.check_webhook()?;
        let policy = HttpPolicy { settings: self, code };
        policy.settings.check_against(&policy.rules(&Policy::default()))?;
        Ok(HttpPolicy { settings: Self { webhook_secrets: None, ..policy.settings }, code: policy.code })
    }

    /// Errors that depend on inherited options.
    fn check_against(&self, rules: &Rules) -> Result<(), SettingsError> {
        let lengths = rules.key_source.rules.lengths();
        if lengths.is_empty() {
            let longest = lengths.end();
            return Err(wrong(
                "key_length_min",
                format_args!("longer than the longest key; choose at most {longest}"),
            ));
        }
        if self.first_sent_window.is_some() && rules.key_source.first_sent.is_none() {
            return Err(without("first_sent_window", "first_sent"));
        }
        if self.key_derive_window.is_some() && rules.key_source.derived.is_none() {
            return Err(without("key_derive_window", "key_derive"));
        }
        self.check_principal_verified(&rules.scope)?;
        let of_grpc = self.outcomes().find(|(statuses, _)| matches!(statuses, StatusSet::Grpc(_)));
        match of_grpc {
            Some((status, outcome)) if rules.classifier != Classifier::Grpc => Err(wrong(
                outcome.name(),
                format_args!("{status} is a gRPC status; set `grpc = true` too, or leave it out"),
            )),
            _ => Ok(()),
        }
    }

    fn check_key(&self) -> Result<(), SettingsError> {
        if self.methods.as_ref().is_some_and(Vec::is_empty) {
            return Err(wrong("methods", "name at least one, or set `key = \"off\"`"));
        }
        if self.key_from.as_ref().is_some_and(Vec::is_empty) {
            return Err(wrong("key_from", "name at least one place, or set `key = \"off\"`"));
        }
        if self.key_length_max.is_some_and(|length_max| !(1..=KEY_LENGTH_MAX).contains(&length_max)) {
            return Err(wrong("key_length_max", format_args!("choose from 1 to {KEY_LENGTH_MAX}")));
        }
        if self.key_pattern.is_some() && !matches!(self.key_format, None | Some(KeyFormatName::Any)) {
            return Err(wrong("key_pattern", "leave either this or `key_format` out"));
        }
        Ok(())
    }

    /// These headers must hold only credentials. A cookie header changes with every cookie that a site sets.
    fn check_credential_headers(&self) -> Result<(), SettingsError> {
        const OPTION: &str = "credential_headers";
        match &self.credential_headers {
            Some(names) if names.is_empty() => {
                Err(wrong(OPTION, "name at least one, or set `principal = \"none\"`"))
            }
            Some(names) if names.contains(&Text(COOKIE)) => {
                Err(wrong(OPTION, "name the session cookie with `principal = \"cookie:NAME\"` instead"))
            }
            _ => Ok(()),
        }
    }

    /// A value that callers can forge counts only if a component in front verifies it (S-02).
    fn check_principal_verified(&self, scope: &ScopeRules) -> Result<(), SettingsError> {
        let chosen = self.principal.as_ref();
        if chosen.is_some_and(|principal| principal.must_be_verified(&scope.credentials))
            && self.principal_verified != Some(true)
        {
            let way_out = "set `principal_verified = true` if a component in front of this one verifies it";
            return Err(wrong("principal", way_out));
        }
        if chosen.is_some_and(|principal| principal.is_code()) {
            return Err(wrong("principal", "it can be chosen in code only"));
        }
        Ok(())
    }

    fn check_fingerprint(&self) -> Result<(), SettingsError> {
        let names = self.fingerprint_headers.iter().flatten();
        NeverCounts::check(names.map(|Text(name)| name))
            .map_err(|error| wrong("fingerprint_headers", error))?;
        let limits =
            [("decode_bytes_max", self.decode_bytes_max), ("decode_ratio_max", self.decode_ratio_max)];
        for (option, limit) in limits {
            at_least_one(option, limit)?;
            if limit.is_some() && self.decode != Some(true) {
                return Err(without(option, "decode = true"));
            }
        }
        if cfg!(not(feature = "decode")) && self.decode == Some(true) {
            return Err(wrong(
                "decode",
                "this build does not support decoding; build it with the feature `decode`",
            ));
        }
        Ok(())
    }

    fn check_spans(&self) -> Result<(), SettingsError> {
        let spans = [
            ("first_sent_window", self.first_sent_window, MILLISECOND),
            ("key_derive_window", self.key_derive_window, MILLISECOND),
            ("retention", self.retention, MILLISECOND),
            ("uncertain_retention", self.uncertain_retention, MILLISECOND),
            ("lease", self.lease, LEASE_MIN),
            ("wait", self.wait, Duration::ZERO),
            ("deadline", self.deadline, MILLISECOND),
            ("run_max", self.run_max, MILLISECOND),
        ];
        for (option, span, shortest) in spans {
            if span.is_some_and(|Span(length)| !(shortest..=SPAN_MAX).contains(&length)) {
                let (shortest, longest) = (Span(shortest), Span(SPAN_MAX));
                return Err(wrong(option, format_args!("choose from {shortest} to {longest}")));
            }
        }
        Ok(())
    }

    fn check_outcomes(&self) -> Result<(), SettingsError> {
        let chosen: Vec<_> = self.outcomes().collect();
        for (index, (statuses, outcome)) in chosen.iter().enumerate() {
            if chosen[..index].iter().any(|(known, other)| known == statuses && other != outcome) {
                let why = format_args!("{statuses} is in another list too; name it once");
                return Err(wrong(outcome.name(), why));
            }
        }
        match (self.grpc, self.classifier) {
            (Some(true), Some(Classifier::GraphQl)) | (Some(false), Some(Classifier::Grpc)) => {
                Err(wrong("grpc", "it contradicts `classifier`; leave one of them out"))
            }
            _ => Ok(()),
        }
    }

    #[cfg(not(feature = "webhook"))]
    fn check_webhook(&self) -> Result<(), SettingsError> {
        let why = "this build does not support webhooks; build it with the feature `webhook`";
        match (&self.webhook, &self.webhook_secrets) {
            (Some(_), _) => Err(wrong("webhook", why)),
            (None, Some(_)) => Err(without("webhook_secrets", "webhook")),
            (None, None) => Ok(()),
        }
    }

    #[cfg(feature = "webhook")]
    fn receiver(&self) -> Result<Option<crate::http::webhook::Webhook>, SettingsError> {
        use crate::http::webhook::Webhook;
        let secrets = self.webhook_secrets.as_ref().map(|secrets| &secrets.0[..]);
        let Some(sender) = &self.webhook else {
            return secrets.map_or(Ok(None), |_| Err(without("webhook_secrets", "webhook")));
        };
        let webhook = Webhook::of(sender.clone(), secrets.unwrap_or_default()).map_err(|error| {
            wrong(if error.is_about_secrets() { "webhook_secrets" } else { "webhook" }, error)
        })?;
        if secrets.is_some_and(|secrets| !secrets.is_empty()) && !webhook.is_signed() {
            return Err(wrong("webhook_secrets", "this sender does not sign; leave this out"));
        }
        Ok(Some(webhook))
    }
}

fn wrong(option: &'static str, why: impl fmt::Display) -> SettingsError {
    SettingsError { option, why: why.to_string() }
}

fn without(option: &'static str, other: &str) -> SettingsError {
    wrong(option, format_args!("it has no effect without `{other}`; set that too, or leave this out"))
}

/// A limit of zero would refuse everything.
fn at_least_one<T: Copy + Default + PartialEq>(
    option: &'static str,
    limit: Option<T>,
) -> Result<(), SettingsError> {
    match limit {
        Some(limit) if limit == T::default() => {
            Err(wrong(option, "choose at least 1, or leave it out for the default"))
        }
        _ => Ok(()),
    }
}

#[cfg(feature = "regex")]
fn key_pattern(pattern: &str) -> Result<KeyFormat, SettingsError> {
    let compile = |text: &str| {
        regex::Regex::new(text)
            .map_err(|error| wrong("key_pattern", format_args!("correct the regular expression: {error}")))
    };
    // Compiled alone first: `a)|(b` is invalid, but would become valid between the anchors.
    compile(pattern)?;
    let pattern = compile(&format!(r"\A(?:{pattern})\z"))?;
    let admits = std::sync::Arc::new(move |key: &str| pattern.is_match(key));
    Ok(KeyFormat::Custom { expected: "in the format that this route requires", admits })
}

#[cfg(not(feature = "regex"))]
fn key_pattern(_pattern: &str) -> Result<KeyFormat, SettingsError> {
    Err(wrong(
        "key_pattern",
        "this build does not support regular expressions; build it with the feature `regex`",
    ))
}
