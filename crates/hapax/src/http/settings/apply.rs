//! Applies settings to rules: an option that is set replaces the previous value, one that is omitted keeps it.

use hapax_core::{KeyFields, KeyFormat, OnLapse};
use http::HeaderName;

use super::{ExpiredKeysName, FingerprintName, KeyFormatName, KeySpelling, OnLapseName, Settings, Text};
use crate::http::classify::{Outcome, StatusSet};
use crate::http::fingerprint::FingerprintInput;
use crate::http::key_source::{DerivedKeys, FirstSent, IDEMPOTENCY_KEY};
use crate::http::policy::Classifier;
use crate::http::rules::Rules;
use crate::http::scope::Credentials;
use crate::policy::{ExpiredKeys, Policy};

impl Settings {
    /// Applies these settings to the rules.
    ///
    /// The dialect and the webhook are separate layers and are not applied here.
    pub(in crate::http) fn apply(&self, rules: &mut Rules) {
        self.apply_key(rules);
        self.apply_key_rules(rules);
        self.apply_scope(rules);
        self.apply_fingerprint(rules);
        self.apply_decoding(rules);
        rules.engine = self.over(rules.engine);
        self.apply_outcomes(rules);
        self.apply_replay(rules);
        self.apply_refusals(rules);
        self.apply_limits(rules);
        set(&mut rules.on_store_error, &self.on_store_error);
        set(&mut rules.early_data, &self.early_data);
    }

    fn apply_key(&self, rules: &mut Rules) {
        set(&mut rules.key, &self.key);
        set_list(&mut rules.methods, &self.methods);
        let source = &mut rules.key_source;
        set_list(&mut source.places, &self.key_from);
        if let Some(Text(header)) = &self.header {
            source.set_header(header.clone());
        }
        if let Some(pointers) = &self.key_derive {
            let window = source.derived.take().and_then(|derived| derived.window);
            let fields = KeyFields::at(pointers.iter().map(|Text(pointer)| pointer.clone()));
            source.derived = (!pointers.is_empty()).then_some(DerivedKeys { fields, window });
        }
        if let (Some(derived), Some(window)) = (&mut source.derived, self.key_derive_window) {
            derived.window = Some(window.0);
        }
        if let Some(Text(header)) = &self.first_sent {
            let window = source.first_sent.as_ref().map_or(FirstSent::WINDOW, |first_sent| first_sent.window);
            source.first_sent = Some(FirstSent { header: header.clone(), window });
        }
        if let (Some(first_sent), Some(window)) = (&mut source.first_sent, self.first_sent_window) {
            first_sent.window = window.0;
        }
    }

    fn apply_key_rules(&self, rules: &mut Rules) {
        let mut key_rules = rules.key_source.rules.clone();
        match self.key_spelling {
            Some(KeySpelling::Quoted) => key_rules = key_rules.strict(),
            Some(KeySpelling::Any) => key_rules = key_rules.lenient(),
            Some(KeySpelling::Raw) => key_rules = key_rules.raw(),
            None => {}
        }
        if let Some(length_min) = self.key_length_min {
            key_rules = key_rules.length_min(length_min);
        }
        if let Some(length_max) = self.key_length_max {
            key_rules = key_rules.length_max(length_max);
        }
        if let Some(format) = self.key_format {
            rules.key_pattern = None;
            key_rules = key_rules.format(format.into());
        }
        rules.key_source.rules = key_rules;
    }

    fn apply_scope(&self, rules: &mut Rules) {
        let scope = &mut rules.scope;
        if let Some(namespace) = &self.namespace {
            scope.namespace = namespace.as_str().into();
        }
        if let Some(names) = &self.credential_headers {
            scope.credentials = Credentials::new(names.iter().map(|Text(name)| name.clone()));
        }
        set(&mut scope.principal, &self.principal);
        set(&mut scope.anonymous, &self.anonymous);
        set(&mut scope.path_case, &self.path_case);
        set(&mut scope.endpoint, &self.endpoint);
        set(&mut scope.host, &self.scope_host);
    }

    fn apply_fingerprint(&self, rules: &mut Rules) {
        let fingerprint = &mut rules.fingerprint;
        if let Some(names) = &self.fingerprint_headers {
            fingerprint.set_headers(names.iter().map(|Text(name)| name.clone()));
        }
        if let Some(counted) = self.fingerprint {
            fingerprint.input = match counted {
                FingerprintName::Request => FingerprintInput::Request,
                FingerprintName::Key => FingerprintInput::Key,
            };
        }
        if let Some(pointers) = &self.json_include {
            fingerprint.json.include = pointers.iter().map(|Text(pointer)| pointer.clone()).collect();
        }
        if let Some(pointers) = &self.json_exclude {
            fingerprint.json.exclude = pointers.iter().map(|Text(pointer)| pointer.clone()).collect();
        }
        set(&mut rules.body_bytes_max, &self.body_bytes_max);
    }

    #[cfg(not(feature = "decode"))]
    fn apply_decoding(&self, _rules: &mut Rules) {}

    #[cfg(feature = "decode")]
    fn apply_decoding(&self, rules: &mut Rules) {
        let decode = &mut rules.fingerprint.decode;
        match self.decode {
            Some(true) => *decode = Some(decode.unwrap_or_default()),
            Some(false) => *decode = None,
            None => {}
        }
        if let Some(limits) = decode {
            set(&mut limits.bytes_max, &self.decode_bytes_max);
            set(&mut limits.ratio_max, &self.decode_ratio_max);
        }
    }

    /// The engine's policy with these settings applied.
    fn over(&self, mut engine: Policy) -> Policy {
        let spans = [
            (self.retention, Policy::retention as fn(_, _) -> _),
            (self.uncertain_retention, Policy::uncertain_retention),
            (self.lease, Policy::lease),
            (self.wait, Policy::wait),
            (self.deadline, Policy::deadline),
            (self.run_max, Policy::run_max),
        ];
        for (span, change) in spans {
            if let Some(span) = span {
                engine = change(engine, span.0);
            }
        }
        if let Some(lapse) = self.on_lapse {
            engine = engine.on_lapse(lapse.into());
        }
        if let Some(attempts_max) = self.attempts_max {
            engine = engine.attempts_max(attempts_max);
        }
        if let Some(expired_keys) = self.expired_keys {
            engine = engine.expired_keys(expired_keys.into());
        }
        if let Some(bytes_max) = self.outcome_bytes_max {
            engine = engine.outcome_bytes_max(bytes_max);
        }
        engine
    }

    /// Classes before single statuses, so that the order of the lists does not count.
    fn apply_outcomes(&self, rules: &mut Rules) {
        for (statuses, outcome) in self.outcomes().filter(|(statuses, _)| is_class(statuses)) {
            rules.outcomes.set(statuses, outcome);
        }
        for (statuses, outcome) in self.outcomes().filter(|(statuses, _)| !is_class(statuses)) {
            rules.outcomes.set(statuses, outcome);
        }
        set(&mut rules.classifier, &self.classifier);
        if self.grpc == Some(true) {
            rules.classifier = Classifier::Grpc;
        }
    }

    /// The listed statuses, and their outcomes.
    pub(super) fn outcomes(&self) -> impl Iterator<Item = (StatusSet, Outcome)> {
        let lists = [
            (&self.pin, Outcome::Pin),
            (&self.release, Outcome::Release),
            (&self.uncertain, Outcome::Uncertain),
        ];
        lists
            .into_iter()
            .flat_map(|(list, outcome)| list.iter().flatten().map(move |Text(statuses)| (*statuses, outcome)))
    }

    /// Sets the outcome of these statuses. A later call overrides an earlier one, also for single statuses of a class.
    pub(in crate::http) fn set_outcome(&mut self, statuses: StatusSet, outcome: Outcome) {
        for list in [&mut self.pin, &mut self.release, &mut self.uncertain].into_iter().flatten() {
            list.retain(|Text(known)| !statuses.includes(known));
        }
        let list = match outcome {
            Outcome::Pin => &mut self.pin,
            Outcome::Release => &mut self.release,
            Outcome::Uncertain => &mut self.uncertain,
        };
        list.get_or_insert_default().push(Text(statuses));
    }

    fn apply_replay(&self, rules: &mut Rules) {
        let replay = &mut rules.replay;
        set_text(&mut replay.marker, &self.replay_marker);
        set(&mut replay.mark_first, &self.mark_first);
        let echoes = self.echo_key.unwrap_or(replay.echo_key.is_some());
        replay.echo_key = echoes.then(|| rules.key_source.header().cloned().unwrap_or(IDEMPOTENCY_KEY));
        set(&mut replay.set_cookie, &self.replay_set_cookie);
        set_list(&mut replay.drop, &self.replay_headers_drop);
        if let Some(only) = &self.replay_headers_only {
            replay.only = Some(only.iter().map(|Text(name)| name.clone()).collect());
        }
    }

    fn apply_refusals(&self, rules: &mut Rules) {
        let refusals = &mut rules.refusals;
        for (Text(code), status) in self.statuses.iter().flatten() {
            refusals.statuses.push((*code, status.0));
        }
        if let Some(Text(hint)) = &self.retry_hint {
            refusals.hints = vec![hint.clone()];
        }
        set(&mut refusals.shape, &self.refusals);
    }

    fn apply_limits(&self, rules: &mut Rules) {
        let limits = &mut rules.limits;
        if let Some(Text(rate)) = self.attempts_per_key {
            limits.attempts_per_key = Some(rate);
        }
        set(&mut limits.open_claims_max, &self.open_claims_max);
        limits.stored_bytes_max = self.stored_bytes_max.or(limits.stored_bytes_max);
    }
}

fn is_class(statuses: &StatusSet) -> bool {
    matches!(statuses, StatusSet::Class(_))
}

fn set<T: Clone>(value: &mut T, chosen: &Option<T>) {
    if let Some(chosen) = chosen {
        value.clone_from(chosen);
    }
}

fn set_text(value: &mut HeaderName, chosen: &Option<Text<HeaderName>>) {
    if let Some(Text(chosen)) = chosen {
        value.clone_from(chosen);
    }
}

fn set_list<T: Clone>(list: &mut Vec<T>, chosen: &Option<Vec<Text<T>>>) {
    if let Some(chosen) = chosen {
        *list = chosen.iter().map(|Text(value)| value.clone()).collect();
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

impl From<OnLapseName> for OnLapse {
    fn from(name: OnLapseName) -> Self {
        match name {
            OnLapseName::Uncertain => Self::Uncertain,
            OnLapseName::Rerun => Self::Rerun,
        }
    }
}

impl From<ExpiredKeysName> for ExpiredKeys {
    fn from(name: ExpiredKeysName) -> Self {
        match name {
            ExpiredKeysName::Run => Self::Run,
            ExpiredKeysName::Refuse => Self::Refuse,
        }
    }
}
