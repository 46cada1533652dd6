//! [`PolicyDocument`]: the idempotency policy that an API publishes (E-06), as data and as OpenAPI.
//!
//! It describes the behaviour that callers observe, and nothing internal to the deployment: no namespace, no secret, no
//! lease.

mod openapi;
mod problems;

use serde::Serialize;

pub(super) use self::openapi::openapi;
pub use self::problems::ProblemDocument;
use super::classify::Outcome;
use super::dialect::Dialect;
use super::fingerprint::FingerprintInput;
use super::layer::Route;
use super::path::PathCase;
use super::policy::{Classifier, EarlyData, KeyMode, OnStoreError};
use super::problem::RefusalShapeName;
use super::rules::Rules;
use super::scope::{Anonymous, Endpoint};
use super::settings::{PrincipalNames, Span};
use crate::policy::ExpiredKeys;

/// The published policy of a layer.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use hapax::http::IdempotencyLayer;
/// use hapax::{Hapax, MemoryStore};
///
/// let layer = IdempotencyLayer::new(Hapax::new(MemoryStore::new()));
/// let document = layer.document();
/// assert_eq!(document.routes[0].retention.iso_8601, "P1D");
/// println!("{}", serde_json::to_string_pretty(&document).unwrap());
/// # });
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct PolicyDocument {
    /// The routes. The first whose path and method match a request applies.
    pub routes: Vec<RouteDocument>,
}

/// The policy of one route.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct RouteDocument {
    /// The pattern of its paths; `/**` for every path.
    pub path: String,
    /// How the letters of paths are compared.
    pub path_case: PathCase,
    /// The methods that are covered.
    pub methods: Vec<String>,
    /// The convention that it is based on.
    pub dialect: Dialect,
    /// The location and format of keys.
    pub key: KeyDocument,
    /// What a key is unique within.
    pub scope: ScopeDocument,
    /// Which parts of a request are compared.
    pub fingerprint: FingerprintDocument,
    /// The outcomes of responses: each class of statuses, then the statuses that differ from their class. On a gRPC
    /// route, each gRPC status; a response without one is uncertain.
    pub outcomes: Vec<OutcomeDocument>,
    /// How the outcome of a response is determined.
    pub classifier: Classifier,
    /// How long a response is replayed, from its completion.
    pub retention: SpanDocument,
    /// How long a duplicate waits for the first response.
    pub wait: SpanDocument,
    /// What happens to a key that was made longer ago than the retention: `run` or `refuse`.
    pub expired_keys: &'static str,
    /// What happens when the store is down.
    pub on_store_error: OnStoreError,
    /// What happens to requests in TLS early data.
    pub early_data: EarlyData,
    /// The size and rate limits.
    pub limits: LimitsDocument,
    /// What is replayed of a response, and how a replay is marked.
    pub replay: ReplayDocument,
    /// The format of refusals.
    pub refusals: RefusalsDocument,
    /// The possible refusals.
    pub problems: Vec<ProblemDocument>,
}

/// The format of refusals.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct RefusalsDocument {
    /// The name of the format; `template` for a custom one.
    pub shape: &'static str,
    /// The value of `Content-Type`.
    pub media_type: String,
    /// Whether the members of problem details are in the body.
    pub problem_details: bool,
}

/// The location and format of keys.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct KeyDocument {
    /// Whether a key is required.
    pub mode: KeyMode,
    /// The places of the key, such as `header:idempotency-key` or `json:/request_id`.
    pub places: Vec<String>,
    /// The first header of the key.
    pub header: Option<String>,
    /// The values of a JSON body from which the key of a request without one is derived, as JSON pointers.
    pub derived_from: Vec<String>,
    /// How long an equal request without a key counts as a retry; none if as long as other records are kept.
    pub derived_window: Option<SpanDocument>,
    /// Whether it must be quoted.
    pub quoted: bool,
    /// Whether any printable text is accepted.
    pub raw: bool,
    /// The minimum length.
    pub length_min: usize,
    /// The maximum length.
    pub length_max: usize,
    /// The format, for people.
    pub format: String,
    /// The regular expression that matches the whole key.
    pub pattern: Option<String>,
    /// The header with the time at which the request was sent first.
    pub first_sent: Option<String>,
    /// The maximum age of that time.
    pub first_sent_window: Option<SpanDocument>,
    /// Whether the key is the event id of a webhook.
    pub webhook: bool,
}

/// What a key is unique within.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct ScopeDocument {
    /// How callers are identified: `credentials`, `header:NAME`, `cookie:NAME`, `jwt:CLAIM`, `extract` or `none`; of a
    /// list the first that has a value.
    pub principal: PrincipalNames,
    /// The headers that hold credentials.
    pub credential_headers: Vec<String>,
    /// What happens to callers without a principal.
    pub anonymous: Anonymous,
    /// How the same key on another endpoint is treated.
    pub endpoint: Endpoint,
    /// Whether the host is part of the scope.
    pub host: bool,
}

/// Which parts of a request are compared.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct FingerprintDocument {
    /// The parts of a request that are compared; empty if only the key is.
    pub counts: &'static [&'static str],
    /// The headers that are compared, in addition to the content type.
    pub headers: Vec<String>,
    /// The only values of a JSON body that are compared; all if empty.
    pub json_include: Vec<String>,
    /// The values of a JSON body that are not compared.
    pub json_exclude: Vec<String>,
    /// Whether compressed bodies are decoded before.
    pub decoded: bool,
}

/// The outcome of some statuses.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct OutcomeDocument {
    /// A class such as `2xx`, one status, or the name of a gRPC status.
    pub statuses: String,
    /// `pin`, `release` or `uncertain`.
    pub outcome: &'static str,
}

/// A duration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct SpanDocument {
    /// For people: `24h`.
    pub text: String,
    /// For programs: `P1D`.
    pub iso_8601: String,
}

/// The size and rate limits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct LimitsDocument {
    /// The maximum size of a request body.
    pub body_bytes_max: usize,
    /// The maximum size of a recorded response.
    pub outcome_bytes_max: usize,
    /// How often one key may be sent, as in `10/1m`.
    pub attempts_per_key: Option<String>,
    /// How many operations of one caller may run at a time.
    pub open_claims_max: u32,
    /// How many bytes of responses may be stored for one caller.
    pub stored_bytes_max: Option<u64>,
}

/// What is replayed of a response, and how a replay is marked.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct ReplayDocument {
    /// The header that is `true` on a replay.
    pub marker: String,
    /// Whether it is `false` on first responses.
    pub mark_first: bool,
    /// Whether responses echo the key.
    pub echo_key: bool,
    /// Whether cookies are replayed.
    pub set_cookie: bool,
    /// Headers that are not replayed.
    pub headers_drop: Vec<String>,
    /// The only replayed response headers, in addition to `Content-Type`, `Content-Encoding`, `Location` and `grpc-*`.
    pub headers_only: Option<Vec<String>>,
    /// The headers that state whether a retry may succeed.
    pub retry_hints: Vec<String>,
    /// The header that states whether the key was honoured.
    pub result_header: Option<String>,
}

impl PolicyDocument {
    pub(super) fn of(routes: &[Route]) -> Self {
        Self { routes: routes.iter().map(RouteDocument::of).collect() }
    }
}

impl RouteDocument {
    fn of(route: &Route) -> Self {
        let policy = &route.policy;
        Self {
            path: route.path().map_or_else(|| "/**".to_owned(), ToString::to_string),
            path_case: policy.scope.path_case,
            methods: texts(&policy.methods),
            dialect: policy.dialect,
            key: KeyDocument::of(policy),
            scope: ScopeDocument {
                principal: PrincipalNames::of(&policy.scope.principal),
                credential_headers: texts(policy.scope.credentials.names()),
                anonymous: policy.scope.anonymous,
                endpoint: policy.scope.endpoint,
                host: policy.scope.host,
            },
            fingerprint: FingerprintDocument::of(policy),
            outcomes: outcomes(policy),
            classifier: policy.classifier,
            retention: Span(policy.engine.retention).into(),
            wait: Span(policy.engine.wait).into(),
            expired_keys: match policy.engine.expired_keys {
                ExpiredKeys::Run => "run",
                ExpiredKeys::Refuse => "refuse",
            },
            on_store_error: policy.on_store_error,
            early_data: policy.early_data,
            limits: LimitsDocument {
                body_bytes_max: policy.body_bytes_max,
                outcome_bytes_max: policy.engine.outcome_bytes_max,
                attempts_per_key: policy.limits.attempts_per_key.map(|rate| rate.to_string()),
                open_claims_max: policy.limits.open_claims_max,
                stored_bytes_max: policy.limits.stored_bytes_max,
            },
            replay: ReplayDocument::of(policy),
            refusals: RefusalsDocument::of(policy),
            problems: problems::of(policy),
        }
    }
}

impl KeyDocument {
    fn of(policy: &Rules) -> Self {
        let source = &policy.key_source;
        let (first_sent, derived) = (source.first_sent.as_ref(), source.derived.as_ref());
        Self {
            mode: policy.key,
            places: texts(&source.places),
            header: source.header().map(ToString::to_string),
            derived_from: texts(derived.map_or(&[][..], |derived| derived.fields.pointers())),
            derived_window: derived.and_then(|derived| derived.window).map(|window| Span(window).into()),
            quoted: source.rules.is_strict(),
            raw: source.rules.is_raw(),
            length_min: *source.rules.lengths().start(),
            length_max: *source.rules.lengths().end(),
            format: source.rules.key_format().expected().to_owned(),
            pattern: policy.key_pattern.as_deref().map(str::to_owned),
            first_sent: first_sent.map(|first_sent| first_sent.header.to_string()),
            first_sent_window: first_sent.map(|first_sent| Span(first_sent.window).into()),
            webhook: policy.is_webhook(),
        }
    }
}

impl FingerprintDocument {
    fn of(policy: &Rules) -> Self {
        let rules = &policy.fingerprint;
        let (counts, headers): (&[_], _) = match rules.input {
            FingerprintInput::Request => {
                (&["method", "path", "query", "content-type", "body"], texts(rules.header_names()))
            }
            FingerprintInput::Key => (&[], Vec::new()),
        };
        Self {
            counts,
            headers,
            json_include: texts(&rules.json.include),
            json_exclude: texts(&rules.json.exclude),
            decoded: policy.decoding().is_some(),
        }
    }
}

impl ReplayDocument {
    fn of(policy: &Rules) -> Self {
        let replay = &policy.replay;
        Self {
            marker: replay.marker.to_string(),
            mark_first: replay.mark_first,
            echo_key: replay.echo_key.is_some(),
            set_cookie: replay.set_cookie,
            headers_drop: texts(&replay.drop),
            headers_only: replay.only.as_ref().map(texts),
            retry_hints: texts(&policy.refusals.hints),
            result_header: policy.result_header.as_ref().map(ToString::to_string),
        }
    }
}

impl RefusalsDocument {
    fn of(policy: &Rules) -> Self {
        let shape = &policy.refusals.shape;
        Self {
            shape: shape.name().map_or("template", RefusalShapeName::name),
            media_type: String::from_utf8_lossy(shape.media_type().as_bytes()).into_owned(),
            problem_details: shape.has_problem_members(),
        }
    }
}

impl From<Span> for SpanDocument {
    fn from(span: Span) -> Self {
        Self { text: span.to_string(), iso_8601: span.iso_8601() }
    }
}

fn outcomes(policy: &Rules) -> Vec<OutcomeDocument> {
    fn listed<S: ToString>(table: impl IntoIterator<Item = (S, Outcome)>) -> Vec<OutcomeDocument> {
        let entry = |(statuses, outcome): (S, Outcome)| OutcomeDocument {
            statuses: statuses.to_string(),
            outcome: outcome.name(),
        };
        table.into_iter().map(entry).collect()
    }
    match policy.classifier {
        Classifier::Grpc => listed(policy.outcomes.published_grpc()),
        Classifier::Status | Classifier::GraphQl => listed(policy.outcomes.published()),
    }
}

fn texts<T: ToString>(values: impl IntoIterator<Item = T>) -> Vec<String> {
    values.into_iter().map(|value| value.to_string()).collect()
}

#[cfg(test)]
mod tests;
