//! [`HttpPolicy`]: what a route does about keys, from where a key is read to what of an answer is replayed.
//!
//! It holds choices only; each is carried out in the file that owns the matter.

mod choices;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hapax_core::{BoxFuture, KeyRules};
use http::{HeaderMap, HeaderName, Method, Response, StatusCode, request};

pub use self::choices::{Classifier, EarlyData, KeyMode, OnStoreError};
use super::capture::{self, ReplayRules};
use super::classify::{Outcome, Outcomes, StatusSet};
use super::dialect::Dialect;
use super::fingerprint::{FingerprintRules, NeverCounts, What};
use super::key_source::{FirstSent, KeySource};
use super::limits::{LimitRules, Rate};
use super::path::PathCase;
use super::problem::{Code, Problem, RefusalRules, RefusalShape};
use super::scope::{Anonymous, Credentials, Endpoint, Principal, ScopeRules};
#[cfg(feature = "webhook")]
use super::webhook::Webhook;
use crate::engine::{Question, Reconcile, Reconciled};
use crate::policy::Policy;

/// How much of a request body is read by default.
const BODY_BYTES_MAX: usize = 2 << 20;

/// Lets a caller in, with its name where the function gives names.
type Authorise = Arc<
    dyn Fn(&request::Parts) -> BoxFuture<'static, Result<Option<Vec<u8>>, Response<Bytes>>> + Send + Sync,
>;

/// What a route does about keys. Starts from a [`Dialect`]; every choice can be made anew.
///
/// ```
/// use hapax::http::{Dialect, HttpPolicy, KeyMode};
/// use std::time::Duration;
///
/// let payments = HttpPolicy::of(Dialect::StripeV1).key(KeyMode::Required).wait(Duration::from_secs(2));
/// let everything_else = HttpPolicy::default();
/// # let _ = (payments, everything_else);
/// ```
#[derive(Clone)]
#[must_use]
pub struct HttpPolicy {
    pub(super) dialect: Dialect,
    pub(super) engine: Policy,
    pub(super) key: KeyMode,
    pub(super) methods: Vec<Method>,
    pub(super) key_source: KeySource,
    /// The regular expression that keys are held against, where the rules of the key source are made of one.
    pub(super) key_pattern: Option<Arc<str>>,
    pub(super) scope: ScopeRules,
    pub(super) fingerprint: FingerprintRules,
    pub(super) outcomes: Outcomes,
    pub(super) classifier: Classifier,
    pub(super) replay: ReplayRules,
    pub(super) refusals: RefusalRules,
    pub(super) limits: LimitRules,
    pub(super) body_bytes_max: usize,
    pub(super) on_store_error: OnStoreError,
    pub(super) early_data: EarlyData,
    /// A response field that tells whether the key was honoured.
    pub(super) result_header: Option<HeaderName>,
    #[cfg(feature = "webhook")]
    pub(super) webhook: Option<Webhook>,
    pub(super) authorise: Option<Authorise>,
    pub(super) reconcile: Option<Reconcile>,
}

impl Default for HttpPolicy {
    fn default() -> Self {
        Self {
            dialect: Dialect::Default,
            engine: Policy::default(),
            key: KeyMode::default(),
            methods: vec![Method::POST, Method::PUT, Method::PATCH],
            key_source: KeySource::default(),
            key_pattern: None,
            scope: ScopeRules::default(),
            fingerprint: FingerprintRules::default(),
            outcomes: Outcomes::default(),
            classifier: Classifier::default(),
            replay: ReplayRules::default(),
            refusals: RefusalRules::default(),
            limits: LimitRules::default(),
            body_bytes_max: BODY_BYTES_MAX,
            on_store_error: OnStoreError::default(),
            early_data: EarlyData::default(),
            result_header: None,
            #[cfg(feature = "webhook")]
            webhook: None,
            authorise: None,
            reconcile: None,
        }
    }
}

impl HttpPolicy {
    /// The policy of an existing convention.
    pub fn of(dialect: Dialect) -> Self {
        dialect.policy()
    }

    /// Nothing is done here, with or without a key and whatever the method: for what is not listed.
    pub fn off() -> Self {
        Self::default().key(KeyMode::Off)
    }

    /// For one method of a gRPC service that takes one message and answers with one. The key is in the metadata, the
    /// outcome is in the trailers, and a refusal is a status.
    ///
    /// Whether a call is a stream cannot be told from outside, so list the methods one by one and leave the rest
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
    ///     .route("/bank.Bank/Transfer".parse().unwrap(), HttpPolicy::grpc().key(KeyMode::Required));
    /// # let _ = idempotency;
    /// # });
    /// ```
    pub fn grpc() -> Self {
        Self::default().classifier(Classifier::Grpc)
    }

    /// How long things last and what a lapsed lease means.
    pub fn engine(mut self, engine: Policy) -> Self {
        self.engine = engine;
        self
    }

    /// Whether a request must have a key. Default: it may.
    pub fn key(mut self, key: KeyMode) -> Self {
        self.key = key;
        self
    }

    /// Which methods are covered. Default POST, PUT and PATCH. GET, HEAD, OPTIONS, TRACE and CONNECT are never
    /// covered, also when they are named here. Methods are compared as HTTP compares them, by case: a `Method` that was
    /// made of `post` is another one than POST and covers nothing.
    pub fn methods(mut self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.methods = methods.into_iter().filter(is_coverable).collect();
        self
    }

    /// The header that holds the key. Default `Idempotency-Key`.
    pub fn header(mut self, header: HeaderName) -> Self {
        if let Some(echoed) = &mut self.replay.echo_key {
            *echoed = header.clone();
        }
        self.key_source.header = header;
        self
    }

    /// Further headers that may hold the key. Two that disagree are refused.
    pub fn aliases(mut self, aliases: impl IntoIterator<Item = HeaderName>) -> Self {
        self.key_source.aliases = aliases.into_iter().collect();
        self
    }

    /// Where in a JSON body the key may be.
    pub fn key_pointer(mut self, pointer: hapax_core::JsonPointer) -> Self {
        self.key_source.pointer = Some(pointer);
        self
    }

    /// What keys must look like.
    pub fn key_rules(mut self, rules: KeyRules) -> Self {
        self.key_source.rules = rules;
        self.key_pattern = None;
        self
    }

    /// The header in which a request says when it was sent first, and how long ago that may be. Default: none.
    pub fn first_sent(mut self, header: HeaderName, window: Duration) -> Self {
        self.key_source.first_sent = Some(FirstSent { header, window });
        self
    }

    /// The namespace of the keys: deployments that share a store keep apart by it.
    pub fn namespace(mut self, namespace: impl Into<Arc<str>>) -> Self {
        self.scope.namespace = namespace.into();
        self
    }

    /// Who the caller is. Default: the hash of all [credential headers](Self::credential_headers) that are there, which
    /// changes with every new credential.
    pub fn principal(mut self, principal: Principal) -> Self {
        self.scope.principal = principal;
        self
    }

    /// The headers that hold credentials. Default `Authorization`, `X-Api-Key`, `Api-Key`, `X-Auth-Token` and
    /// `X-Shopify-Access-Token`.
    pub fn credential_headers(mut self, names: impl IntoIterator<Item = HeaderName>) -> Self {
        self.scope.credentials = Credentials::new(names);
        self
    }

    /// What to do with callers who are nobody. Default: they share a scope.
    pub fn anonymous(mut self, anonymous: Anonymous) -> Self {
        self.scope.anonymous = anonymous;
        self
    }

    /// What the same key on another endpoint is. Default: another operation.
    pub fn endpoint(mut self, endpoint: Endpoint) -> Self {
        self.scope.endpoint = endpoint;
        self
    }

    /// How the letters of paths are compared, by the route and in the scope of a key. Default: case counts. For services
    /// that take `/ORDERS` for `/orders`: otherwise a request in another spelling goes past the route, and one key runs
    /// once for each spelling.
    pub fn path_case(mut self, path_case: PathCase) -> Self {
        self.scope.path_case = path_case;
        self
    }

    /// Whether hosts are told apart. Default: no.
    pub fn scope_host(mut self, scope_host: bool) -> Self {
        self.scope.host = scope_host;
        self
    }

    /// Which request headers make another request of it, beside the content type. Default `If-Match`,
    /// `If-None-Match` and the usual names for an API's version.
    ///
    /// # Errors
    /// For a header that differs between tries of one request, such as a trace id.
    pub fn fingerprint_headers(
        mut self,
        headers: impl IntoIterator<Item = HeaderName>,
    ) -> Result<Self, NeverCounts> {
        self.fingerprint = self.fingerprint.headers(headers)?;
        Ok(self)
    }

    /// Lets nothing but the key count: whatever is asked for under a known key is answered with what is known.
    pub fn fingerprint_key_only(mut self) -> Self {
        self.fingerprint.what = What::Key;
        self
    }

    /// Which members of a JSON body count. Default: all.
    pub fn fingerprint_json(mut self, select: hapax_core::Select) -> Self {
        self.fingerprint.json = select;
        self
    }

    /// Takes compressed bodies as decoded, within these limits. Default: as sent.
    #[cfg(feature = "decode")]
    pub fn decode(mut self, limits: super::DecodeLimits) -> Self {
        self.fingerprint.decode = Some(limits);
        self
    }

    /// The largest request body that is taken. Default 2 MiB.
    pub fn body_bytes_max(mut self, body_bytes_max: usize) -> Self {
        self.body_bytes_max = body_bytes_max;
        self
    }

    /// The largest response that is kept; see [`Policy::outcome_bytes_max`].
    pub fn outcome_bytes_max(self, bytes: usize) -> Self {
        self.with_engine(|policy| policy.outcome_bytes_max(bytes))
    }

    /// How long a finished record answers; see [`Policy::retention`].
    pub fn retention(self, retention: Duration) -> Self {
        self.with_engine(|policy| policy.retention(retention))
    }

    /// How long a claim is believed without renewal; see [`Policy::lease`].
    pub fn lease(self, lease: Duration) -> Self {
        self.with_engine(|policy| policy.lease(lease))
    }

    /// How long a duplicate waits for the first one's answer; see [`Policy::wait`].
    pub fn wait(self, wait: Duration) -> Self {
        self.with_engine(|policy| policy.wait(wait))
    }

    /// How long a client is kept waiting; see [`Policy::deadline`]. Then it gets 504, and the handler goes on.
    pub fn deadline(self, deadline: Duration) -> Self {
        self.with_engine(|policy| policy.deadline(deadline))
    }

    /// What a lapsed lease means; see [`Policy::on_lapse`].
    pub fn on_lapse(self, on_lapse: hapax_core::OnLapse) -> Self {
        self.with_engine(|policy| policy.on_lapse(on_lapse))
    }

    fn with_engine(mut self, change: impl FnOnce(Policy) -> Policy) -> Self {
        self.engine = change(self.engine);
        self
    }

    /// What to do when the store cannot take the claim. Default: refuse.
    pub fn on_store_error(mut self, on_store_error: OnStoreError) -> Self {
        self.on_store_error = on_store_error;
        self
    }

    /// What these statuses mean for the key.
    pub fn outcome(mut self, statuses: StatusSet, outcome: Outcome) -> Self {
        self.outcomes.set(statuses, outcome);
        self
    }

    /// How the outcome of a response is found out. Default: by its status.
    pub fn classifier(mut self, classifier: Classifier) -> Self {
        self.classifier = classifier;
        self
    }

    /// The name of the header that marks a replay. Default `X-Idempotent-Replayed`.
    pub fn replay_marker(mut self, marker: HeaderName) -> Self {
        self.replay.marker = marker;
        self
    }

    /// Whether first responses carry the marker too, with the value `false`. Default: no.
    pub fn mark_first(mut self, mark_first: bool) -> Self {
        self.replay.mark_first = mark_first;
        self
    }

    /// Whether responses repeat the key in its header. Default: no.
    pub fn echo_key(mut self, echo_key: bool) -> Self {
        self.replay.echo_key = echo_key.then(|| self.key_source.header.clone());
        self
    }

    /// Whether cookies are stored and replayed. Default: no.
    pub fn replay_set_cookie(mut self, set_cookie: bool) -> Self {
        self.replay.set_cookie = set_cookie;
        self
    }

    /// Response headers that are not stored, beside those that never are.
    pub fn replay_headers_drop(mut self, drop: impl IntoIterator<Item = HeaderName>) -> Self {
        self.replay.drop = drop.into_iter().collect();
        self
    }

    /// The only response headers that are stored.
    pub fn replay_headers_only(mut self, only: impl IntoIterator<Item = HeaderName>) -> Self {
        self.replay.only = Some(only.into_iter().collect());
        self
    }

    /// What to do with requests in TLS early data. Default: refuse them.
    pub fn early_data(mut self, early_data: EarlyData) -> Self {
        self.early_data = early_data;
        self
    }

    /// Another status for a refusal. Its type stays the same.
    pub fn status(mut self, code: Code, status: StatusCode) -> Self {
        self.refusals.statuses.push((code, status));
        self
    }

    /// A header that tells clients `true` or `false` whether a retry is worth it. Default `X-Should-Retry`.
    pub fn retry_hint(mut self, hint: HeaderName) -> Self {
        self.refusals.hints = vec![hint];
        self
    }

    /// What the body of a refusal looks like. Default: problem details.
    pub fn refusals(mut self, shape: RefusalShape) -> Self {
        self.refusals.shape = shape;
        self
    }

    /// How often one key may be tried. Default: no limit.
    pub fn attempts_per_key(mut self, rate: Rate) -> Self {
        self.limits.attempts_per_key = Some(rate);
        self
    }

    /// How many operations of one principal this process runs at a time, also those whose caller is gone. Default 4096.
    pub fn open_claims_max(mut self, open_claims_max: u32) -> Self {
        self.limits.open_claims_max = open_claims_max;
        self
    }

    /// How many bytes of answers this process keeps for one principal. Default: no limit.
    pub fn stored_bytes_max(mut self, stored_bytes_max: u64) -> Self {
        self.limits.stored_bytes_max = Some(stored_bytes_max);
        self
    }

    /// Receives webhooks: the signature is checked first, and the sender's id is the key. Only successes are final,
    /// and they are kept for a week, longer than senders retry. A credential tells no senders apart unless it is made
    /// the [principal](Self::principal) afterwards.
    #[cfg(feature = "webhook")]
    pub fn webhook(mut self, webhook: Webhook) -> Self {
        self.set_webhook(webhook);
        self
    }

    #[cfg(feature = "webhook")]
    pub(super) fn set_webhook(&mut self, webhook: Webhook) {
        self.webhook = Some(webhook);
        self.key = KeyMode::Required;
        self.outcomes = Outcomes::success_only();
        self.fingerprint.what = super::fingerprint::What::Key;
        self.engine = self.engine.retention(super::webhook::RETENTION);
        // The signature does not cover it: whoever sends a delivery again may put another one on it.
        if self.scope.principal.is_credential(&self.scope.credentials) {
            self.scope.principal = Principal::None;
        }
    }

    /// Whom to ask, before anything is claimed or replayed, whether the caller may do this now. What it answers
    /// instead goes to the client.
    ///
    /// It guards what is recorded, not the handler: requests that pass untouched, such as those without a key, are
    /// not asked about.
    pub fn authorise<A, F>(mut self, ask: A) -> Self
    where
        A: Fn(&request::Parts) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), Response<Bytes>>> + Send + 'static,
    {
        self.authorise = Some(Arc::new(move |parts| {
            let answer = ask(parts);
            Box::pin(async move { answer.await.map(|()| None) })
        }));
        self
    }

    /// The same, of a function that names the caller it lets in: the name is the [principal](Principal::Authorised),
    /// however often the caller's token was renewed. A caller with an empty name is refused.
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
    pub fn authorise_as<A, F, P>(mut self, ask: A) -> Self
    where
        A: Fn(&request::Parts) -> F + Send + Sync + 'static,
        F: Future<Output = Result<P, Response<Bytes>>> + Send + 'static,
        P: Into<Vec<u8>>,
    {
        self.authorise = Some(Arc::new(move |parts| {
            let answer = ask(parts);
            Box::pin(async move { answer.await.map(|name| Some(name.into())) })
        }));
        self.principal(Principal::Authorised)
    }

    /// Whom to ask "did this happen?" when nobody knows, before refusing as uncertain. With the response that
    /// answers when it did.
    pub fn reconcile<A, F>(mut self, ask: A) -> Self
    where
        A: Fn(Question) -> F + Send + Sync + 'static,
        F: Future<Output = Reconciled<Response<Bytes>>> + Send + 'static,
    {
        self.reconcile = Some(Arc::new(move |question| {
            let answer = ask(question);
            Box::pin(async move {
                match answer.await {
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

    /// What people should know about this policy before the first request, such as that callers share a scope.
    pub fn warnings(&self) -> Vec<&'static str> {
        let scope = &self.scope;
        if self.key == KeyMode::Off {
            return Vec::new();
        }
        if self.is_webhook()
            && matches!(scope.principal, Principal::None)
            && scope.anonymous == Anonymous::Share
        {
            // The ids are those of one sender, and the answers are for it alone.
            return Vec::new();
        }
        super::scope::warnings(scope)
    }

    /// Whether a request with these fields has a key, may have it elsewhere, or needs one.
    pub(super) fn protects(&self, headers: &HeaderMap) -> bool {
        let source = &self.key_source;
        let mut names = std::iter::once(&source.header).chain(&source.aliases);
        self.key == KeyMode::Required
            || self.is_webhook()
            || source.pointer.is_some()
            || names.any(|name| headers.contains_key(name))
    }

    pub(super) fn is_webhook(&self) -> bool {
        #[cfg(feature = "webhook")]
        return self.webhook.is_some();
        #[cfg(not(feature = "webhook"))]
        false
    }

    pub(super) fn key_missing(&self) -> Problem {
        Problem::of(Code::KeyMissing, format!("send a key in the header {}", self.key_source.header))
    }
}

/// Safe methods have nothing to protect, and a tunnel has no answer to keep (M-02, M-04).
pub(super) fn is_coverable(method: &Method) -> bool {
    !(method.is_safe() || *method == Method::CONNECT)
}

impl fmt::Debug for HttpPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpPolicy")
            .field("dialect", &self.dialect)
            .field("key", &self.key)
            .field("methods", &self.methods)
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
