//! The options in force, read back from the rules.

use hapax_core::{KeyFormat, KeyRules, OnLapse};

use super::{
    ExpiredKeysName, FingerprintName, KeyFormatName, KeySpelling, OnLapseName, RefusalStatus, Settings, Span,
    Text,
};
use crate::http::classify::{Outcome, StatusSet};
use crate::http::fingerprint::FingerprintInput;
use crate::http::policy::Classifier;
use crate::http::rules::Rules;
use crate::policy::ExpiredKeys;

impl Rules {
    /// Every option in force. Secrets are omitted, and so are the choices that need code.
    pub(in crate::http) fn settings(&self) -> Settings {
        let source = &self.key_source;
        let first_sent = source.first_sent.as_ref();
        let derived = source.derived.as_ref();
        let engine = &self.engine;
        let decode = self.decoding();
        let listed = |outcome| Some(listed(self, outcome));
        Settings {
            dialect: Some(self.dialect),
            key: Some(self.key),
            methods: Some(texts(&self.methods)),
            header: source.header().cloned().map(Text),
            key_from: Some(texts(&source.places)),
            key_derive: Some(texts(derived.map_or(&[][..], |derived| derived.fields.pointers()))),
            key_derive_window: derived.and_then(|derived| derived.window).map(Span),
            key_spelling: Some(KeySpelling::of(&source.rules)),
            key_length_min: Some(*source.rules.lengths().start()),
            key_length_max: Some(*source.rules.lengths().end()),
            key_format: match self.key_pattern {
                Some(_) => Some(KeyFormatName::Any),
                None => KeyFormatName::of(source.rules.key_format()),
            },
            key_pattern: self.key_pattern.as_deref().map(str::to_owned),
            first_sent: first_sent.map(|first_sent| Text(first_sent.header.clone())),
            first_sent_window: first_sent.map(|first_sent| Span(first_sent.window)),
            namespace: Some(self.scope.namespace.as_ref().to_owned()),
            principal: Some(self.scope.principal.clone()),
            credential_headers: Some(texts(self.scope.credentials.names())),
            principal_verified: Some(self.scope.principal.must_be_verified(&self.scope.credentials)),
            anonymous: Some(self.scope.anonymous),
            path_case: Some(self.scope.path_case),
            endpoint: Some(self.scope.endpoint),
            scope_host: Some(self.scope.host),
            fingerprint: Some(match self.fingerprint.input {
                FingerprintInput::Request => FingerprintName::Request,
                FingerprintInput::Key => FingerprintName::Key,
            }),
            fingerprint_headers: Some(texts(self.fingerprint.header_names())),
            json_include: Some(texts(&self.fingerprint.json.include)),
            json_exclude: Some(texts(&self.fingerprint.json.exclude)),
            decode: Some(decode.is_some()),
            decode_bytes_max: decode.map(|(bytes_max, _)| bytes_max),
            decode_ratio_max: decode.map(|(_, ratio_max)| ratio_max),
            body_bytes_max: Some(self.body_bytes_max),
            retention: Some(Span(engine.retention)),
            uncertain_retention: Some(Span(engine.uncertain_retention)),
            lease: Some(Span(engine.lease)),
            wait: Some(Span(engine.wait)),
            deadline: engine.deadline.map(Span),
            run_max: Some(Span(engine.run_max)),
            on_lapse: Some(engine.on_lapse.into()),
            attempts_max: Some(engine.attempts_max),
            expired_keys: Some(engine.expired_keys.into()),
            on_store_error: Some(self.on_store_error),
            pin: listed(Outcome::Pin),
            release: listed(Outcome::Release),
            uncertain: listed(Outcome::Uncertain),
            classifier: Some(self.classifier),
            outcome_bytes_max: Some(engine.outcome_bytes_max),
            replay_marker: Some(Text(self.replay.marker.clone())),
            mark_first: Some(self.replay.mark_first),
            echo_key: Some(self.replay.echo_key.is_some()),
            replay_set_cookie: Some(self.replay.set_cookie),
            replay_headers_drop: Some(texts(&self.replay.drop)),
            replay_headers_only: self.replay.only.as_ref().map(texts),
            early_data: Some(self.early_data),
            // In order: of two statuses for one code, the later one applies.
            statuses: Some(
                self.refusals
                    .statuses
                    .iter()
                    .map(|(code, status)| (Text(*code), RefusalStatus(*status)))
                    .collect(),
            ),
            retry_hint: self.refusals.hints.first().cloned().map(Text),
            refusals: Some(self.refusals.shape.clone()),
            attempts_per_key: self.limits.attempts_per_key.map(Text),
            open_claims_max: Some(self.limits.open_claims_max),
            stored_bytes_max: self.limits.stored_bytes_max,
            grpc: Some(self.classifier == Classifier::Grpc),
            webhook: self.webhook_sender(),
            webhook_secrets: None,
        }
    }

    /// The maximum number of decoded bytes, in total and per byte sent, if bodies are decoded.
    pub(in crate::http) fn decoding(&self) -> Option<(usize, usize)> {
        #[cfg(feature = "decode")]
        return self.fingerprint.decode.map(|limits| (limits.bytes_max, limits.ratio_max));
        #[cfg(not(feature = "decode"))]
        None
    }

    fn webhook_sender(&self) -> Option<super::WebhookSender> {
        #[cfg(feature = "webhook")]
        return self.webhook.as_ref()?.description().cloned();
        #[cfg(not(feature = "webhook"))]
        None
    }
}

fn texts<'a, T: Clone + 'a>(values: impl IntoIterator<Item = &'a T>) -> Vec<Text<T>> {
    values.into_iter().cloned().map(Text).collect()
}

fn listed(rules: &Rules, wanted: Outcome) -> Vec<Text<StatusSet>> {
    let of_grpc = (rules.classifier == Classifier::Grpc).then(|| rules.outcomes.published_grpc());
    let published = rules.outcomes.published().into_iter().chain(of_grpc.into_iter().flatten());
    published.filter(|(_, outcome)| *outcome == wanted).map(|(statuses, _)| Text(statuses)).collect()
}

impl KeySpelling {
    pub(in crate::http) fn of(rules: &KeyRules) -> Self {
        match rules {
            rules if rules.is_strict() => Self::Quoted,
            rules if rules.is_raw() => Self::Raw,
            _ => Self::Any,
        }
    }
}

impl KeyFormatName {
    /// `None` for a format without a name in files.
    pub(in crate::http) fn of(format: &KeyFormat) -> Option<Self> {
        match format {
            KeyFormat::Any => Some(Self::Any),
            KeyFormat::Uuid => Some(Self::Uuid),
            KeyFormat::UuidV7 => Some(Self::UuidV7),
            KeyFormat::Ulid => Some(Self::Ulid),
            _ => None,
        }
    }
}

impl From<OnLapse> for OnLapseName {
    fn from(on_lapse: OnLapse) -> Self {
        match on_lapse {
            OnLapse::Uncertain => Self::Uncertain,
            OnLapse::Rerun => Self::Rerun,
        }
    }
}

impl From<ExpiredKeys> for ExpiredKeysName {
    fn from(expired_keys: ExpiredKeys) -> Self {
        match expired_keys {
            ExpiredKeys::Run => Self::Run,
            ExpiredKeys::Refuse => Self::Refuse,
        }
    }
}
