//! [`Rules`]: a compiled policy, which requests are served by.
//!
//! They are made of layers, each overriding the one before: the defaults, the durations that the
//! [`Hapax`](crate::Hapax) was built with, the dialect, the webhook's sender, and the options of the route.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use hapax_core::BoxFuture;
use http::{HeaderMap, HeaderName, Method, Response, request};

use super::capture::ReplayRules;
use super::classify::Outcomes;
use super::dialect::Dialect;
use super::fingerprint::FingerprintRules;
use super::key_place::KeyPlace;
use super::key_source::KeySource;
use super::limits::LimitRules;
use super::policy::{Classifier, EarlyData, KeyMode, OnStoreError};
use super::problem::{Code, Problem, RefusalRules};
use super::scope::{self, Anonymous, Principal, ScopeRules};
#[cfg(feature = "webhook")]
use super::webhook::{self, Webhook};
use crate::engine::Reconcile;
use crate::policy::Policy;

/// The default limit of a request body.
const BODY_BYTES_MAX: usize = 2 << 20;

/// Authorises a caller, and names it if the function returns names.
pub(super) type Authorise = Arc<
    dyn Fn(&request::Parts) -> BoxFuture<'static, Result<Option<Vec<u8>>, Response<Bytes>>> + Send + Sync,
>;

/// The rules for the requests of one route.
#[derive(Clone)]
pub(super) struct Rules {
    pub(super) dialect: Dialect,
    pub(super) engine: Policy,
    pub(super) key: KeyMode,
    pub(super) methods: Vec<Method>,
    pub(super) key_source: KeySource,
    /// The regular expression that keys must match, if the key format is one.
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
    /// A response field that states whether the key was honoured.
    pub(super) result_header: Option<HeaderName>,
    #[cfg(feature = "webhook")]
    pub(super) webhook: Option<Webhook>,
    pub(super) authorise: Option<Authorise>,
    pub(super) reconcile: Option<Reconcile>,
}

impl Default for Rules {
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

impl Rules {
    /// Configures the webhooks of this sender: a layer between the dialect and the options of the route.
    #[cfg(feature = "webhook")]
    pub(super) fn receive(&mut self, webhook: Webhook) {
        self.webhook = Some(webhook);
        self.key = KeyMode::Required;
        self.outcomes = Outcomes::success_only();
        self.fingerprint.input = super::fingerprint::FingerprintInput::Key;
        self.engine = self.engine.retention(webhook::RETENTION);
        // The signature does not cover credentials: a redelivery may carry another one.
        if self.scope.principal.is_credential(&self.scope.credentials) {
            self.scope.principal = Principal::None;
        }
    }

    /// Warnings for operators, such as that callers share a scope.
    pub(super) fn warnings(&self) -> Vec<&'static str> {
        let rules = &self.scope;
        if self.key == KeyMode::Off {
            return Vec::new();
        }
        if self.is_webhook()
            && matches!(rules.principal, Principal::None)
            && rules.anonymous == Anonymous::Share
        {
            // The ids are those of one sender, and only that sender gets the responses.
            return Vec::new();
        }
        scope::warnings(rules)
    }

    /// Whether a request with these fields has a key, may have it in its query or its body, or needs one.
    pub(super) fn protects(&self, headers: &HeaderMap) -> bool {
        let source = &self.key_source;
        self.key == KeyMode::Required
            || self.is_webhook()
            || source.derived.is_some()
            || source.places.iter().any(|place| match place {
                KeyPlace::Header(name) => headers.contains_key(name),
                KeyPlace::Query(_) | KeyPlace::Json(_) | KeyPlace::Form(_) => true,
            })
    }

    pub(super) fn is_webhook(&self) -> bool {
        #[cfg(feature = "webhook")]
        return self.webhook.is_some();
        #[cfg(not(feature = "webhook"))]
        false
    }

    pub(super) fn key_missing(&self) -> Problem {
        let described = |place: &KeyPlace| match place {
            KeyPlace::Header(name) => format!("the header {name}"),
            _ => place.described(),
        };
        let places: Vec<_> = self.key_source.places.iter().map(described).collect();
        Problem::of(Code::KeyMissing, format!("send a key in {}", places.join(" or ")))
    }
}

/// Makes an [`Authorise`] from an asynchronous function.
pub(super) fn authorise<A, F>(authorise: A) -> Authorise
where
    A: Fn(&request::Parts) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Option<Vec<u8>>, Response<Bytes>>> + Send + 'static,
{
    Arc::new(move |parts| Box::pin(authorise(parts)))
}

impl std::fmt::Debug for Rules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rules")
            .field("dialect", &self.dialect)
            .field("key", &self.key)
            .field("methods", &self.methods)
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}
