//! From settings to a policy: what was said is checked and put on top of the dialect.

use std::time::Duration;

use hapax_core::key::KEY_LENGTH_MAX;
use hapax_core::{KeyFormat, OnLapse, Select};
use http::StatusCode;

use super::check::{
    MILLISECOND, at_least_one, coverable, credentials, header_name, header_names, key_pattern, parsed,
    pointers, principal_of, within, without, wrong,
};
use super::{
    ExpiredKeysName, FingerprintName, KeyFormatName, KeySpelling, OnLapseName, Settings, SettingsError, Span,
};
use crate::http::classify::{Outcome, StatusSet};
use crate::http::fingerprint::What;
use crate::http::key_source::FirstSent;
use crate::http::policy::{Classifier, HttpPolicy};
use crate::http::problem::Code;
use crate::policy::{ExpiredKeys, LEASE_MIN, Policy};

/// How long ago a request may have been sent first when only the header is named. The least that OASIS allows.
const FIRST_SENT_WINDOW: Duration = Duration::from_secs(300);

impl Settings {
    /// The policy that this describes.
    ///
    /// # Errors
    /// When an option makes no sense, says nothing without another one, or needs a feature that is not compiled in.
    pub fn policy(&self) -> Result<HttpPolicy, SettingsError> {
        let mut policy = HttpPolicy::of(self.dialect.unwrap_or_default());
        self.set_webhook(&mut policy)?;
        self.set_key(&mut policy)?;
        self.set_first_sent(&mut policy)?;
        self.set_key_rules(&mut policy)?;
        self.set_scope(&mut policy)?;
        self.set_fingerprint(&mut policy)?;
        self.set_decoding(&mut policy)?;
        self.set_engine(&mut policy)?;
        self.set_outcomes(&mut policy)?;
        self.set_replay(&mut policy)?;
        self.set_refusals(&mut policy)?;
        self.set_limits(&mut policy)?;
        Ok(policy)
    }

    fn set_key(&self, policy: &mut HttpPolicy) -> Result<(), SettingsError> {
        set(&mut policy.key, self.key);
        if let Some(methods) = &self.methods {
            policy.methods = methods.iter().map(|method| coverable(method)).collect::<Result<_, _>>()?;
            if policy.methods.is_empty() {
                return Err(wrong("methods", "name at least one, or say `key = \"off\"`"));
            }
        }
        let source = &mut policy.key_source;
        if let Some(header) = &self.header {
            source.header = header_name("header", header)?;
        }
        if let Some(aliases) = &self.aliases {
            source.aliases = header_names("aliases", aliases)?;
        }
        if let Some(pointer) = &self.key_pointer {
            source.pointer = Some(parsed("key_pointer", pointer)?);
        }
        Ok(())
    }

    fn set_first_sent(&self, policy: &mut HttpPolicy) -> Result<(), SettingsError> {
        let place = &mut policy.key_source.first_sent;
        if let Some(header) = &self.first_sent {
            let window = place.as_ref().map_or(FIRST_SENT_WINDOW, |first_sent| first_sent.window);
            *place = Some(FirstSent { header: header_name("first_sent", header)?, window });
        }
        match (place, self.first_sent_window) {
            (_, None) => Ok(()),
            (None, Some(_)) => Err(without("first_sent_window", "first_sent")),
            (Some(first_sent), Some(window)) => {
                first_sent.window = within("first_sent_window", window, MILLISECOND)?;
                Ok(())
            }
        }
    }

    fn set_key_rules(&self, policy: &mut HttpPolicy) -> Result<(), SettingsError> {
        let mut rules = policy.key_source.rules.clone();
        match self.key_spelling {
            Some(KeySpelling::Quoted) => rules = rules.strict(),
            Some(KeySpelling::Any) => rules = rules.lenient(),
            Some(KeySpelling::Raw) => rules = rules.raw(),
            None => {}
        }
        if let Some(length_min) = self.key_length_min {
            rules = rules.length_min(length_min);
        }
        if let Some(length_max) = self.key_length_max {
            if !(1..=KEY_LENGTH_MAX).contains(&length_max) {
                return Err(wrong("key_length_max", format_args!("choose from 1 to {KEY_LENGTH_MAX}")));
            }
            rules = rules.length_max(length_max);
        }
        if rules.lengths().is_empty() {
            let longest = rules.lengths().end().to_owned();
            return Err(wrong("key_length_min", format_args!("no key is so long; choose at most {longest}")));
        }
        if let Some(format) = self.key_format {
            policy.key_pattern = None;
            rules = rules.format(format.into());
        }
        if let Some(pattern) = &self.key_pattern {
            if !matches!(self.key_format, None | Some(KeyFormatName::Any)) {
                return Err(wrong("key_pattern", "leave either this or `key_format` out"));
            }
            rules = rules.format(key_pattern(pattern)?);
            policy.key_pattern = Some(pattern.as_str().into());
        }
        policy.key_source.rules = rules;
        Ok(())
    }

    fn set_scope(&self, policy: &mut HttpPolicy) -> Result<(), SettingsError> {
        let scope = &mut policy.scope;
        if let Some(namespace) = &self.namespace {
            scope.namespace = namespace.as_str().into();
        }
        if let Some(names) = &self.credential_headers {
            scope.credentials = credentials(names)?;
        }
        if let Some(names) = &self.principal {
            let is_verified = self.principal_verified == Some(true);
            scope.principal = principal_of(names, &scope.credentials, is_verified)?;
        }
        set(&mut scope.anonymous, self.anonymous);
        set(&mut scope.path_case, self.path_case);
        set(&mut scope.endpoint, self.endpoint);
        set(&mut scope.host, self.scope_host);
        Ok(())
    }

    fn set_fingerprint(&self, policy: &mut HttpPolicy) -> Result<(), SettingsError> {
        if let Some(headers) = &self.fingerprint_headers {
            let headers = header_names("fingerprint_headers", headers)?;
            let rules = policy.fingerprint.clone().headers(headers);
            policy.fingerprint = rules.map_err(|error| wrong("fingerprint_headers", error))?;
        }
        let rules = &mut policy.fingerprint;
        if let Some(counted) = self.fingerprint {
            rules.what = match counted {
                FingerprintName::Request => What::Request,
                FingerprintName::Key => What::Key,
            };
        }
        let Select { include, exclude, .. } = &mut rules.json;
        if let Some(texts) = &self.json_include {
            *include = pointers("json_include", texts)?.into_iter().collect();
        }
        if let Some(texts) = &self.json_exclude {
            *exclude = pointers("json_exclude", texts)?.into_iter().collect();
        }
        set(&mut policy.body_bytes_max, self.body_bytes_max);
        Ok(())
    }

    fn set_decoding(&self, policy: &mut HttpPolicy) -> Result<(), SettingsError> {
        let limits =
            [("decode_bytes_max", self.decode_bytes_max), ("decode_ratio_max", self.decode_ratio_max)];
        if self.decode != Some(true) {
            return match limits.iter().find(|(_, limit)| limit.is_some()) {
                Some((option, _)) => Err(without(option, "decode = true")),
                None => Ok(()),
            };
        }
        for (option, limit) in limits {
            at_least_one(option, limit)?;
        }
        #[cfg(not(feature = "decode"))]
        {
            let _ = policy;
            Err(wrong("decode", "this build cannot decode; build it with the feature `decode`"))
        }
        #[cfg(feature = "decode")]
        {
            let mut limits = crate::http::DecodeLimits::default();
            set(&mut limits.bytes_max, self.decode_bytes_max);
            set(&mut limits.ratio_max, self.decode_ratio_max);
            policy.fingerprint.decode = Some(limits);
            Ok(())
        }
    }

    fn set_engine(&self, policy: &mut HttpPolicy) -> Result<(), SettingsError> {
        type Change = fn(Policy, Duration) -> Policy;
        let spans: [(&'static str, Option<Span>, Duration, Change); 6] = [
            ("retention", self.retention, MILLISECOND, Policy::retention),
            ("uncertain_retention", self.uncertain_retention, MILLISECOND, Policy::uncertain_retention),
            ("lease", self.lease, LEASE_MIN, Policy::lease),
            ("wait", self.wait, Duration::ZERO, Policy::wait),
            ("deadline", self.deadline, MILLISECOND, Policy::deadline),
            ("run_max", self.run_max, MILLISECOND, Policy::run_max),
        ];
        let mut engine = policy.engine;
        for (option, span, shortest, change) in spans {
            if let Some(span) = span {
                engine = change(engine, within(option, span, shortest)?);
            }
        }
        if let Some(lapse) = self.on_lapse {
            engine = engine.on_lapse(match lapse {
                OnLapseName::Uncertain => OnLapse::Uncertain,
                OnLapseName::Rerun => OnLapse::Rerun,
            });
        }
        if let Some(attempts_max) = at_least_one("attempts_max", self.attempts_max)? {
            engine = engine.attempts_max(attempts_max);
        }
        if let Some(expired) = self.expired_keys {
            engine = engine.expired_keys(match expired {
                ExpiredKeysName::Run => ExpiredKeys::Run,
                ExpiredKeysName::Reject => ExpiredKeys::Refuse,
            });
        }
        if let Some(bytes) = self.outcome_bytes_max {
            engine = engine.outcome_bytes_max(bytes);
        }
        policy.engine = engine;
        set(&mut policy.on_store_error, self.on_store_error);
        set(&mut policy.early_data, self.early_data);
        Ok(())
    }

    /// Classes before single statuses, so that the order of the lists does not count.
    fn set_outcomes(&self, policy: &mut HttpPolicy) -> Result<(), SettingsError> {
        let lists = [
            ("pin", &self.pin, Outcome::Pin),
            ("release", &self.release, Outcome::Release),
            ("uncertain", &self.uncertain, Outcome::Uncertain),
        ];
        let mut said: Vec<(StatusSet, Outcome)> = Vec::new();
        for (option, statuses, outcome) in lists {
            for text in statuses.iter().flatten() {
                let statuses: StatusSet = text.parse().map_err(|error| wrong(option, error))?;
                if said.iter().any(|(known, other)| *known == statuses && *other != outcome) {
                    return Err(wrong(
                        option,
                        format_args!("{statuses} is in another list, too; name it once"),
                    ));
                }
                said.push((statuses, outcome));
            }
        }
        said.sort_by_key(|(statuses, _)| !matches!(statuses, StatusSet::Class(_)));
        for (statuses, outcome) in &said {
            policy.outcomes.set(*statuses, *outcome);
        }
        set(&mut policy.classifier, self.classifier);
        match (self.grpc, policy.classifier) {
            (Some(true), Classifier::GraphQl) | (Some(false), Classifier::Grpc) => {
                return Err(wrong("grpc", "`classifier` says otherwise; leave one of them out"));
            }
            (Some(true), _) => policy.classifier = Classifier::Grpc,
            (Some(false) | None, _) => {}
        }
        let of_grpc = said.iter().find(|(statuses, _)| matches!(statuses, StatusSet::Grpc(_)));
        match of_grpc {
            Some((status, outcome)) if policy.classifier != Classifier::Grpc => Err(wrong(
                outcome.name(),
                format_args!("{status} is a status of gRPC; say `grpc = true` too, or leave it out"),
            )),
            _ => Ok(()),
        }
    }

    fn set_replay(&self, policy: &mut HttpPolicy) -> Result<(), SettingsError> {
        let replay = &mut policy.replay;
        if let Some(marker) = &self.replay_marker {
            replay.marker = header_name("replay_marker", marker)?;
        }
        set(&mut replay.mark_first, self.mark_first);
        let echoes = self.echo_key.unwrap_or(replay.echo_key.is_some());
        replay.echo_key = echoes.then(|| policy.key_source.header.clone());
        set(&mut replay.set_cookie, self.replay_set_cookie);
        if let Some(drop) = &self.replay_headers_drop {
            replay.drop = header_names("replay_headers_drop", drop)?;
        }
        if let Some(only) = &self.replay_headers_only {
            replay.only = Some(header_names("replay_headers_only", only)?);
        }
        Ok(())
    }

    fn set_refusals(&self, policy: &mut HttpPolicy) -> Result<(), SettingsError> {
        for (name, status) in self.statuses.iter().flatten() {
            let code = Code::from_name(name).ok_or_else(|| {
                let known = Code::ALL.map(Code::name).join(", ");
                wrong("statuses", format_args!("no problem is called {name:?}; there are {known}"))
            })?;
            let status =
                StatusCode::from_u16(*status).ok().filter(|status| *status >= StatusCode::BAD_REQUEST);
            let status = status.filter(|status| status.as_u16() < 600);
            let status = status.ok_or_else(|| {
                wrong("statuses", format_args!("`{name}` is a refusal; give it a status from 400 to 599"))
            })?;
            policy.refusals.statuses.push((code, status));
        }
        if let Some(hint) = &self.retry_hint {
            policy.refusals.hints = vec![header_name("retry_hint", hint)?];
        }
        if let Some(refusals) = &self.refusals {
            policy.refusals.shape = refusals.shape().map_err(|error| wrong("refusals", error))?;
        }
        Ok(())
    }

    fn set_limits(&self, policy: &mut HttpPolicy) -> Result<(), SettingsError> {
        let limits = &mut policy.limits;
        if let Some(rate) = &self.attempts_per_key {
            limits.attempts_per_key = Some(parsed("attempts_per_key", rate)?);
        }
        let open_claims_max = at_least_one("open_claims_max", self.open_claims_max)?;
        limits.open_claims_max = open_claims_max.unwrap_or(limits.open_claims_max);
        let stored_bytes_max = at_least_one("stored_bytes_max", self.stored_bytes_max)?;
        limits.stored_bytes_max = stored_bytes_max.or(limits.stored_bytes_max);
        Ok(())
    }

    #[cfg(not(feature = "webhook"))]
    fn set_webhook(&self, _policy: &mut HttpPolicy) -> Result<(), SettingsError> {
        let why = "this build receives none; build it with the feature `webhook`";
        match (&self.webhook, &self.webhook_secrets) {
            (Some(_), _) => Err(wrong("webhook", why)),
            (None, Some(_)) => Err(without("webhook_secrets", "webhook")),
            (None, None) => Ok(()),
        }
    }

    #[cfg(feature = "webhook")]
    fn set_webhook(&self, policy: &mut HttpPolicy) -> Result<(), SettingsError> {
        use crate::http::webhook::Webhook;
        let secrets = self.webhook_secrets.as_ref().map(|secrets| &secrets.0[..]);
        let Some(sender) = &self.webhook else {
            return secrets.map_or(Ok(()), |_| Err(without("webhook_secrets", "webhook")));
        };
        let webhook = Webhook::of(sender.clone(), secrets.unwrap_or_default()).map_err(|error| {
            wrong(if error.is_about_secrets() { "webhook_secrets" } else { "webhook" }, error)
        })?;
        if secrets.is_some_and(|secrets| !secrets.is_empty()) && !webhook.is_signed() {
            return Err(wrong("webhook_secrets", "this sender does not sign; leave this out"));
        }
        policy.set_webhook(webhook);
        Ok(())
    }
}

fn set<T: Copy>(place: &mut T, said: Option<T>) {
    if let Some(said) = said {
        *place = said;
    }
}

impl From<KeyFormatName> for KeyFormat {
    fn from(name: KeyFormatName) -> Self {
        match name {
            KeyFormatName::Any => Self::Any,
            KeyFormatName::Uuid => Self::Uuid,
            KeyFormatName::UuidV7 => Self::UuidV7,
            KeyFormatName::Ulid => Self::Ulid,
        }
    }
}
