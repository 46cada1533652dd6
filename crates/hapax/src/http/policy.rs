//! [`HttpPolicy`]: the idempotency policy of a route, from the location of the key to the replayed fields.
//!
//! It is a description: the options of [`Settings`], and the choices that need code. Requests are served by the
//! [`Rules`] that are compiled from it.

mod choices;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hapax_core::{KeyFields, KeyFormat, KeyRules, OnLapse};
use http::{HeaderName, Method, Response, StatusCode, request};

pub use self::choices::{Classifier, EarlyData, KeyMode, OnStoreError};
use super::capture::{self, ReplayRules};
use super::classify::{Outcome, StatusSet};
use super::dialect::Dialect;
use super::fingerprint::NeverCounts;
use super::key_place::KeyPlace;
use super::limits::Rate;
use super::path::PathCase;
use super::problem::{Code, RefusalShape};
use super::rules::{self, Authorise, Rules};
use super::scope::{Anonymous, Endpoint, Principal};
use super::settings::{FingerprintName, KeyFormatName, KeySpelling, RefusalStatus, Settings, Span, Text};
#[cfg(feature = "webhook")]
use super::webhook::Webhook;
use crate::engine::{Question, Reconcile, Reconciled};
use crate::policy::Policy;

/// The idempotency policy of a route. Starts from a [`Dialect`]; every option can be overridden.
///
/// Options that are not set are inherited: from the dialect, then from the [`Hapax`](crate::Hapax) that the layer was
/// made of (durations), then from the defaults.
///
/// ```
/// use hapax::http::{Dialect, HttpPolicy, KeyMode};
/// use std::time::Duration;
///
/// let payments = HttpPolicy::of(Dialect::StripeV1).key(KeyMode::Required).wait(Duration::from_secs(2));
/// let everything_else = HttpPolicy::default();
/// # let _ = (payments, everything_else);
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct HttpPolicy {
    pub(super) settings: Settings,
    pub(super) code: CodeChoices,
}

/// The choices that need code.
#[derive(Clone, Default)]
pub(super) struct CodeChoices {
    /// A custom key format.
    pub(super) key_format: Option<KeyFormat>,
    #[cfg(feature = "webhook")]
    pub(super) webhook: Option<Webhook>,
    pub(super) authorise: Option<Authorise>,
    pub(super) reconcile: Option<Reconcile>,
}

impl HttpPolicy {
    /// The policy of an existing convention.
    pub fn of(dialect: Dialect) -> Self {
        Self {
            settings: Settings { dialect: Some(dialect), ..Settings::default() },
            code: CodeChoices::default(),
        }
    }

    /// The options in force, each with its value, for a [`Hapax`](crate::Hapax) with the default durations.
    /// [`Settings::policy`] makes the same policy of them.
    ///
    /// Secrets are omitted, and so are the choices that need code: [`authorise`](Self::authorise),
    /// [`reconcile`](Self::reconcile), a custom key format and an unsigned webhook. A principal that code extracts is
    /// shown as `extract`, which files cannot choose.
    pub fn settings(&self) -> Settings {
        self.rules(&Policy::default()).settings()
    }

    /// The rules that requests are served by; durations that are not set are taken from `inherited`.
    pub(super) fn rules(&self, inherited: &Policy) -> Rules {
        let dialect = self.settings.dialect.unwrap_or_default();
        let mut rules = Rules {
            dialect,
            engine: *inherited,
            outcomes: dialect.outcomes(),
            result_header: dialect.result_header(),
            authorise: self.code.authorise.clone(),
            reconcile: self.code.reconcile.clone(),
            ..Rules::default()
        };
        dialect.settings().apply(&mut rules);
        #[cfg(feature = "webhook")]
        if let Some(webhook) = &self.code.webhook {
            rules.receive(webhook.clone());
        }
        self.settings.apply(&mut rules);
        if let Some(format) = &self.code.key_format {
            rules.key_source.rules = rules.key_source.rules.format(format.clone());
            rules.key_pattern = self.settings.key_pattern.as_deref().map(Into::into);
        }
        rules
    }

    /// Disables the layer for a route, with or without a key and for every method: for requests that are not listed.
    pub fn off() -> Self {
        Self::default().key(KeyMode::Off)
    }

    /// For one unary method of a gRPC service. The key is in the metadata, the outcome is in the trailers, and a
    /// refusal is a status.
    ///
    /// A layer cannot tell a unary call from a stream, so list the methods one by one and leave the rest
    /// [off](Self::off).
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// use hapax::http::{HttpPolicy, IdempotencyLayer, KeyMode};
    /// use hapax::{Hapax, MemoryStore};
    ///
    /// let hapax = Hapax::new(MemoryStore::new());
    /// let idempotency = IdempotencyLayer::new(&hapax)
    ///     .policy(HttpPolicy::off())
    ///     .route("/bank.Bank/Transfer", HttpPolicy::grpc().key(KeyMode::Required));
    /// # let _ = idempotency;
    /// # });
    /// ```
    pub fn grpc() -> Self {
        Self::default().classifier(Classifier::Grpc)
    }

    /// The engine's policy: durations and lapsed leases. Replaces every option of the engine; only the deadline is
    /// inherited if the policy has none.
    pub fn engine(mut self, engine: Policy) -> Self {
        let settings = &mut self.settings;
        settings.retention = Some(Span(engine.retention));
        settings.uncertain_retention = Some(Span(engine.uncertain_retention));
        settings.lease = Some(Span(engine.lease));
        settings.wait = Some(Span(engine.wait));
        settings.deadline = engine.deadline.map(Span);
        settings.run_max = Some(Span(engine.run_max));
        settings.on_lapse = Some(engine.on_lapse.into());
        settings.attempts_max = Some(engine.attempts_max);
        settings.expired_keys = Some(engine.expired_keys.into());
        settings.outcome_bytes_max = Some(engine.outcome_bytes_max);
        self
    }

    /// Whether a request must have a key. Default: optional.
    pub fn key(mut self, key: KeyMode) -> Self {
        self.settings.key = Some(key);
        self
    }

    /// Which methods are covered. Default POST, PUT and PATCH. GET, HEAD, OPTIONS, TRACE and CONNECT are never covered,
    /// even if they are listed here. Methods are case-sensitive, as in HTTP: a `Method` made of `post` differs from
    /// POST and covers nothing.
    pub fn methods(mut self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.settings.methods = Some(methods.into_iter().filter(is_coverable).map(Text).collect());
        self
    }

    /// The header that holds the key. Default `Idempotency-Key`.
    pub fn header(mut self, header: HeaderName) -> Self {
        self.settings.header = Some(Text(header));
        self
    }

    /// All places of the key: the first that has one wins, and all that have one must agree. Default: the header
    /// `Idempotency-Key`.
    pub fn key_from(mut self, places: impl IntoIterator<Item = KeyPlace>) -> Self {
        self.settings.key_from = texts(places);
        self
    }

    /// Derives a key from these values of a JSON body for requests without one. A request with the same values within
    /// `window` is a retry, a later one is a new operation. Default: no key is derived.
    ///
    /// The responses carry `Idempotency-Key-Derived: true`. A request that lacks one of the values has no key.
    pub fn key_derive(mut self, fields: &KeyFields, window: Duration) -> Self {
        self.settings.key_derive = texts(fields.pointers().iter().cloned());
        self.settings.key_derive_window = Some(Span(window));
        self
    }

    /// The format of keys.
    pub fn key_rules(mut self, rules: KeyRules) -> Self {
        let settings = &mut self.settings;
        settings.key_spelling = Some(KeySpelling::of(&rules));
        settings.key_length_min = Some(*rules.lengths().start());
        settings.key_length_max = Some(*rules.lengths().end());
        settings.key_pattern = None;
        settings.key_format = KeyFormatName::of(rules.key_format());
        let has_name = settings.key_format.is_some();
        self.code.key_format = (!has_name).then(|| rules.key_format().clone());
        self
    }

    /// The header with the time at which a request was first sent, and the maximum age of that time. Default: none.
    pub fn first_sent(mut self, header: HeaderName, window: Duration) -> Self {
        self.settings.first_sent = Some(Text(header));
        self.settings.first_sent_window = Some(Span(window));
        self
    }

    /// The namespace of the keys: separates deployments that share a store.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.settings.namespace = Some(namespace.into());
        self
    }

    /// How the caller is identified. Default: by the hash of all [credential headers](Self::credential_headers) that
    /// are present, which changes with every new credential.
    pub fn principal(mut self, principal: Principal) -> Self {
        self.settings.principal = Some(principal);
        self
    }

    /// The headers that hold credentials. Default `Authorization`, `X-Api-Key`, `Api-Key`, `X-Auth-Token` and
    /// `X-Shopify-Access-Token`.
    pub fn credential_headers(mut self, names: impl IntoIterator<Item = HeaderName>) -> Self {
        self.settings.credential_headers = texts(names);
        self
    }

    /// What to do with callers that have no principal. Default: they share a scope.
    pub fn anonymous(mut self, anonymous: Anonymous) -> Self {
        self.settings.anonymous = Some(anonymous);
        self
    }

    /// How the same key on another endpoint is treated. Default: as another operation.
    pub fn endpoint(mut self, endpoint: Endpoint) -> Self {
        self.settings.endpoint = Some(endpoint);
        self
    }

    /// How the case of letters in paths is compared, by the route and in the scope of a key. Default: case-sensitive.
    /// For services that accept `/ORDERS` for `/orders`: otherwise a request in another spelling bypasses the route,
    /// and one key runs once for each spelling.
    pub fn path_case(mut self, path_case: PathCase) -> Self {
        self.settings.path_case = Some(path_case);
        self
    }

    /// Whether the host is part of the scope. Default: no.
    pub fn scope_host(mut self, scope_host: bool) -> Self {
        self.settings.scope_host = Some(scope_host);
        self
    }

    /// Which request headers count in the fingerprint, in addition to the content type. Default `If-Match`,
    /// `If-None-Match` and the usual names for an API's version.
    ///
    /// # Errors
    /// For a header that differs between attempts of one request, such as a trace id.
    pub fn fingerprint_headers(
        mut self,
        headers: impl IntoIterator<Item = HeaderName>,
    ) -> Result<Self, NeverCounts> {
        let headers: Vec<HeaderName> = headers.into_iter().collect();
        NeverCounts::check(&headers)?;
        self.settings.fingerprint_headers = texts(headers);
        Ok(self)
    }

    /// Only the key counts: every request with a known key gets the recorded response.
    pub fn fingerprint_key_only(mut self) -> Self {
        self.settings.fingerprint = Some(FingerprintName::Key);
        self
    }

    /// Which members of a JSON body count. Default: all.
    pub fn fingerprint_json(mut self, select: hapax_core::Select) -> Self {
        self.settings.json_include = texts(select.include);
        self.settings.json_exclude = texts(select.exclude);
        self
    }

    /// Decodes compressed bodies for the fingerprint, within these limits. Default: as sent.
    #[cfg(feature = "decode")]
    pub fn decode(mut self, limits: super::DecodeLimits) -> Self {
        self.settings.decode = Some(true);
        self.settings.decode_bytes_max = Some(limits.bytes_max);
        self.settings.decode_ratio_max = Some(limits.ratio_max);
        self
    }

    /// The maximum size of a request body. Default 2 MiB.
    pub fn body_bytes_max(mut self, body_bytes_max: usize) -> Self {
        self.settings.body_bytes_max = Some(body_bytes_max);
        self
    }

    /// The maximum size of a recorded response; see [`Policy::outcome_bytes_max`].
    pub fn outcome_bytes_max(mut self, bytes: usize) -> Self {
        self.settings.outcome_bytes_max = Some(bytes);
        self
    }

    /// How long a finished record is replayed; see [`Policy::retention`].
    pub fn retention(mut self, retention: Duration) -> Self {
        self.settings.retention = Some(Span(retention));
        self
    }

    /// How long a claim is valid without renewal; see [`Policy::lease`].
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = Some(Span(lease));
        self
    }

    /// How long a duplicate waits for the first response; see [`Policy::wait`].
    pub fn wait(mut self, wait: Duration) -> Self {
        self.settings.wait = Some(Span(wait));
        self
    }

    /// How long a client waits at most; see [`Policy::deadline`]. Then it gets 504, and the handler continues.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.settings.deadline = Some(Span(deadline));
        self
    }

    /// What happens when a lease lapses; see [`Policy::on_lapse`].
    pub fn on_lapse(mut self, on_lapse: OnLapse) -> Self {
        self.settings.on_lapse = Some(on_lapse.into());
        self
    }

    /// What to do when the store cannot take the claim. Default: refuse.
    pub fn on_store_error(mut self, on_store_error: OnStoreError) -> Self {
        self.settings.on_store_error = Some(on_store_error);
        self
    }

    /// The outcome of these statuses for the key.
    pub fn outcome(mut self, statuses: StatusSet, outcome: Outcome) -> Self {
        self.settings.set_outcome(statuses, outcome);
        self
    }

    /// How the outcome of a response is determined. Default: by its status.
    pub fn classifier(mut self, classifier: Classifier) -> Self {
        self.settings.classifier = Some(classifier);
        self.settings.grpc = None;
        self
    }

    /// The name of the header that marks a replay. Default `X-Idempotent-Replayed`.
    pub fn replay_marker(mut self, marker: HeaderName) -> Self {
        self.settings.replay_marker = Some(Text(marker));
        self
    }

    /// Whether first responses carry the marker too, with the value `false`. Default: no.
    pub fn mark_first(mut self, mark_first: bool) -> Self {
        self.settings.mark_first = Some(mark_first);
        self
    }

    /// Whether responses echo the key in its header. Default: no.
    pub fn echo_key(mut self, echo_key: bool) -> Self {
        self.settings.echo_key = Some(echo_key);
        self
    }

    /// Whether cookies are stored and replayed. Default: no.
    pub fn replay_set_cookie(mut self, set_cookie: bool) -> Self {
        self.settings.replay_set_cookie = Some(set_cookie);
        self
    }

    /// Response headers that are not stored, in addition to those that never are.
    pub fn replay_headers_drop(mut self, drop: impl IntoIterator<Item = HeaderName>) -> Self {
        self.settings.replay_headers_drop = texts(drop);
        self
    }

    /// The only response headers that are stored.
    pub fn replay_headers_only(mut self, only: impl IntoIterator<Item = HeaderName>) -> Self {
        self.settings.replay_headers_only = texts(only);
        self
    }

    /// What to do with requests in TLS early data. Default: refuse them.
    pub fn early_data(mut self, early_data: EarlyData) -> Self {
        self.settings.early_data = Some(early_data);
        self
    }

    /// Another status for a refusal. Its type is unchanged.
    pub fn status(mut self, code: Code, status: StatusCode) -> Self {
        self.settings.statuses.get_or_insert_default().insert(Text(code), RefusalStatus(status));
        self
    }

    /// A header that states, by `true` or `false`, whether a retry may succeed. Default `X-Should-Retry`.
    pub fn retry_hint(mut self, hint: HeaderName) -> Self {
        self.settings.retry_hint = Some(Text(hint));
        self
    }

    /// The format of the body of a refusal. Default: problem details.
    pub fn refusals(mut self, shape: RefusalShape) -> Self {
        self.settings.refusals = Some(shape);
        self
    }

    /// The rate limit of attempts for one key. Default: no limit.
    pub fn attempts_per_key(mut self, rate: Rate) -> Self {
        self.settings.attempts_per_key = Some(Text(rate));
        self
    }

    /// How many operations of one principal this process runs at a time, including those whose caller has disconnected.
    /// Default 4096.
    pub fn open_claims_max(mut self, open_claims_max: u32) -> Self {
        self.settings.open_claims_max = Some(open_claims_max);
        self
    }

    /// How many bytes of responses this process stores for one principal. Default: no limit.
    pub fn stored_bytes_max(mut self, stored_bytes_max: u64) -> Self {
        self.settings.stored_bytes_max = Some(stored_bytes_max);
        self
    }

    /// Receives webhooks: the signature is checked first, and the sender's id is the key. Unless the policy overrides
    /// it, only successes are final, they are kept for a week, longer than senders retry, and credentials do not
    /// identify senders.
    #[cfg(feature = "webhook")]
    pub fn webhook(mut self, webhook: Webhook) -> Self {
        self.settings.webhook = webhook.description().cloned();
        self.code.webhook = Some(webhook);
        self
    }

    /// Checks, before a request is claimed or replayed, whether the caller is authorised now. A response that the
    /// function returns instead goes to the client.
    ///
    /// It protects the records, not the handler: requests that pass unchanged, such as those without a key, are not
    /// checked.
    pub fn authorise<A, F>(mut self, authorise: A) -> Self
    where
        A: Fn(&request::Parts) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), Response<Bytes>>> + Send + 'static,
    {
        self.code.authorise = Some(rules::authorise(move |parts| {
            let authorised = authorise(parts);
            async move { authorised.await.map(|()| None) }
        }));
        self
    }

    /// The same with a function that names the authorised caller: the name is the [principal](Principal::Authorised),
    /// independent of renewed tokens. A caller with an empty name is refused.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use hapax::http::HttpPolicy;
    /// use http::Response;
    ///
    /// async fn account_of(_token: Option<Vec<u8>>) -> Option<String> {
    ///     Some("account-7".to_owned()) // for example by token introspection (RFC 7662)
    /// }
    ///
    /// let policy = HttpPolicy::default().authorise_as(|head| {
    ///     let token = head.headers.get("authorization").map(|value| value.as_bytes().to_vec());
    ///     async move {
    ///         let unauthorised = || Response::builder().status(401).body(Bytes::new()).unwrap_or_default();
    ///         account_of(token).await.ok_or_else(unauthorised)
    ///     }
    /// });
    /// # let _ = policy;
    /// ```
    pub fn authorise_as<A, F, P>(mut self, authorise: A) -> Self
    where
        A: Fn(&request::Parts) -> F + Send + Sync + 'static,
        F: Future<Output = Result<P, Response<Bytes>>> + Send + 'static,
        P: Into<Vec<u8>>,
    {
        self.code.authorise = Some(rules::authorise(move |parts| {
            let authorised = authorise(parts);
            async move { authorised.await.map(|name| Some(name.into())) }
        }));
        self.principal(Principal::Authorised)
    }

    /// Finds out whether an operation with an unknown outcome happened, before the request is refused as uncertain. If
    /// it did, the function returns the response for the retries.
    pub fn reconcile<A, F>(mut self, ask: A) -> Self
    where
        A: Fn(Question) -> F + Send + Sync + 'static,
        F: Future<Output = Reconciled<Response<Bytes>>> + Send + 'static,
    {
        self.code.reconcile = Some(Arc::new(move |question| {
            let reconciled = ask(question);
            Box::pin(async move {
                match reconciled.await {
                    Reconciled::Applied(response) => {
                        let (parts, body) = response.into_parts();
                        let rules = ReplayRules::default();
                        Reconciled::Applied(capture::record(&rules, None, &parts, &body, None))
                    }
                    Reconciled::NotApplied => Reconciled::NotApplied,
                    Reconciled::Unknown => Reconciled::Unknown,
                }
            })
        }));
        self
    }

    /// Warnings about this policy for operators, such as that callers share a scope.
    pub fn warnings(&self) -> Vec<&'static str> {
        self.rules(&Policy::default()).warnings()
    }
}

fn texts<T>(values: impl IntoIterator<Item = T>) -> Option<Vec<Text<T>>> {
    Some(values.into_iter().map(Text).collect())
}

/// Safe methods need no protection, and a tunnel has no response to record (M-02, M-04).
pub(super) fn is_coverable(method: &Method) -> bool {
    !(method.is_safe() || *method == Method::CONNECT)
}

impl fmt::Debug for HttpPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules = self.rules(&Policy::default());
        f.debug_struct("HttpPolicy")
            .field("dialect", &rules.dialect)
            .field("key", &rules.key)
            .field("methods", &rules.methods)
            .field("engine", &rules.engine)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
