//! From a policy to the settings that describe it, every option said.

use hapax_core::{KeyFormat, OnLapse};
use http::HeaderName;

use super::{
    ExpiredKeysName, FingerprintName, KeyFormatName, KeySpelling, OnLapseName, PrincipalNames, Refusals,
    Settings, Span,
};
use crate::http::classify::Outcome;
use crate::http::fingerprint::What;
use crate::http::policy::{Classifier, HttpPolicy};
use crate::http::scope::Principal;
use crate::policy::ExpiredKeys;

impl HttpPolicy {
    /// The policy as settings: what is in force, option by option, so that `settings().policy()` does the same.
    ///
    /// Secrets are left out, and so is what only code can say: [`authorise`](Self::authorise),
    /// [`reconcile`](Self::reconcile), a key format of one's own and an unsigned webhook. A principal that
    /// code extracts is called `extract`, which no file can ask for.
    pub fn settings(&self) -> Settings {
        let source = &self.key_source;
        let first_sent = source.first_sent.as_ref();
        let engine = &self.engine;
        let decode = self.decoding();
        let listed = |outcome| Some(listed(self, outcome));
        Settings {
            dialect: Some(self.dialect),
            key: Some(self.key),
            methods: Some(self.methods.iter().map(ToString::to_string).collect()),
            header: Some(source.header.to_string()),
            aliases: Some(texts(&source.aliases)),
            key_pointer: source.pointer.as_ref().map(ToString::to_string),
            key_spelling: Some(match &source.rules {
                rules if rules.is_strict() => KeySpelling::Quoted,
                rules if rules.is_raw() => KeySpelling::Raw,
                _ => KeySpelling::Any,
            }),
            key_length_min: Some(*source.rules.lengths().start()),
            key_length_max: Some(*source.rules.lengths().end()),
            key_format: format_name(source.rules.key_format(), self.key_pattern.is_some()),
            key_pattern: self.key_pattern.as_deref().map(str::to_owned),
            first_sent: first_sent.map(|first_sent| first_sent.header.to_string()),
            first_sent_window: first_sent.map(|first_sent| Span(first_sent.window)),
            namespace: Some(self.scope.namespace.as_ref().to_owned()),
            principal: Some(PrincipalNames::of(&self.scope.principal)),
            credential_headers: Some(texts(self.scope.credentials.names())),
            principal_verified: Some(self.scope.principal.must_be_verified(&self.scope.credentials)),
            anonymous: Some(self.scope.anonymous),
            path_case: Some(self.scope.path_case),
            endpoint: Some(self.scope.endpoint),
            scope_host: Some(self.scope.host),
            fingerprint: Some(match self.fingerprint.what {
                What::Request => FingerprintName::Request,
                What::Key => FingerprintName::Key,
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
            on_lapse: Some(match engine.on_lapse {
                OnLapse::Uncertain => OnLapseName::Uncertain,
                OnLapse::Rerun => OnLapseName::Rerun,
            }),
            attempts_max: Some(engine.attempts_max),
            expired_keys: Some(match engine.expired_keys {
                ExpiredKeys::Run => ExpiredKeysName::Run,
                ExpiredKeys::Refuse => ExpiredKeysName::Reject,
            }),
            on_store_error: Some(self.on_store_error),
            pin: listed(Outcome::Pin),
            release: listed(Outcome::Release),
            uncertain: listed(Outcome::Uncertain),
            classifier: Some(self.classifier),
            outcome_bytes_max: Some(engine.outcome_bytes_max),
            replay_marker: Some(self.replay.marker.to_string()),
            mark_first: Some(self.replay.mark_first),
            echo_key: Some(self.replay.echo_key.is_some()),
            replay_set_cookie: Some(self.replay.set_cookie),
            replay_headers_drop: Some(texts(&self.replay.drop)),
            replay_headers_only: self.replay.only.as_ref().map(texts),
            early_data: Some(self.early_data),
            // In their order, so that of two words about one code the later counts.
            statuses: Some(
                self.refusals
                    .statuses
                    .iter()
                    .map(|(code, status)| (code.to_string(), status.as_u16()))
                    .collect(),
            ),
            retry_hint: self.refusals.hints.first().map(HeaderName::to_string),
            refusals: Some(Refusals::of(&self.refusals.shape)),
            attempts_per_key: self.limits.attempts_per_key.map(|rate| rate.to_string()),
            open_claims_max: Some(self.limits.open_claims_max),
            stored_bytes_max: self.limits.stored_bytes_max,
            grpc: Some(self.classifier == Classifier::Grpc),
            webhook: self.webhook_sender(),
            webhook_secrets: None,
        }
    }

    /// The most decoded bytes, in all and for each byte sent, where bodies are decoded.
    pub(in crate::http) fn decoding(&self) -> Option<(usize, usize)> {
        #[cfg(feature = "decode")]
        return self.fingerprint.decode.map(|limits| (limits.bytes_max, limits.ratio_max));
        #[cfg(not(feature = "decode"))]
        None
    }

    fn webhook_sender(&self) -> Option<super::WebhookSender> {
        #[cfg(feature = "webhook")]
        return self.webhook.as_ref()?.said().cloned();
        #[cfg(not(feature = "webhook"))]
        None
    }
}

impl PrincipalNames {
    pub(in crate::http) fn of(principal: &Principal) -> Self {
        match principal.sources() {
            [one] => Self::One(one.to_string()),
            several => Self::Several(texts(several)),
        }
    }
}

fn texts<T: ToString>(values: impl IntoIterator<Item = T>) -> Vec<String> {
    values.into_iter().map(|value| value.to_string()).collect()
}

fn listed(policy: &HttpPolicy, wanted: Outcome) -> Vec<String> {
    let of_grpc = (policy.classifier == Classifier::Grpc).then(|| policy.outcomes.published_grpc());
    let published = policy.outcomes.published().into_iter().chain(of_grpc.into_iter().flatten());
    texts(published.filter(|(_, outcome)| *outcome == wanted).map(|(statuses, _)| statuses))
}

/// None for a format that a file has no word for.
fn format_name(format: &KeyFormat, is_pattern: bool) -> Option<KeyFormatName> {
    match format {
        KeyFormat::Any => Some(KeyFormatName::Any),
        KeyFormat::Uuid => Some(KeyFormatName::Uuid),
        KeyFormat::UuidV7 => Some(KeyFormatName::UuidV7),
        KeyFormat::Ulid => Some(KeyFormatName::Ulid),
        _ if is_pattern => Some(KeyFormatName::Any),
        _ => None,
    }
}
