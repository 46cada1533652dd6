//! [`PolicyDocument`]: what an API publishes about its keys (E-06), as data and as OpenAPI.
//!
//! It tells callers what they meet, and nothing that is the deployment's own: no namespace, no secret, no length of
//! a lease.

mod openapi;
mod problems;

use serde::Serialize;

pub(super) use self::openapi::openapi;
pub use self::problems::ProblemDocument;
use super::classify::Outcome;
use super::dialect::Dialect;
use super::fingerprint::What;
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
    /// The routes. The first counts whose path and method are those of a request.
    pub routes: Vec<RouteDocument>,
}

/// What holds on one route.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct RouteDocument {
    /// The pattern of its paths; `/**` where it takes every path.
    pub path: String,
    /// How the letters of paths are compared.
    pub path_case: PathCase,
    /// The methods that are covered.
    pub methods: Vec<String>,
    /// The convention that it follows.
    pub dialect: Dialect,
    /// Where keys are and what they look like.
    pub key: KeyDocument,
    /// What a key is unique within.
    pub scope: ScopeDocument,
    /// What makes two requests the same.
    pub fingerprint: FingerprintDocument,
    /// What answers mean for the key: each class of statuses, then those that differ from their class. On a route that
    /// speaks gRPC, each of gRPC's statuses; an answer without one is uncertain.
    pub outcomes: Vec<OutcomeDocument>,
    /// How an answer's outcome is found out.
    pub classifier: Classifier,
    /// How long an answer is replayed, from its completion.
    pub retention: SpanDocument,
    /// How long a duplicate waits for the first one's answer.
    pub wait: SpanDocument,
    /// What happens to a key that was made longer ago than that: `run` or `refuse`.
    pub expired_keys: &'static str,
    /// What happens when the store is down.
    pub on_store_error: OnStoreError,
    /// What happens to requests in TLS early data.
    pub early_data: EarlyData,
    /// How much is taken and kept.
    pub limits: LimitsDocument,
    /// What of an answer is replayed, and how that is marked.
    pub replay: ReplayDocument,
    /// What refusals look like.
    pub refusals: RefusalsDocument,
    /// What a request can be refused with.
    pub problems: Vec<ProblemDocument>,
}

/// What refusals look like.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct RefusalsDocument {
    /// The name of the shape; `template` for another.
    pub shape: &'static str,
    /// The value of `Content-Type`.
    pub media_type: String,
    /// Whether the members of problem details are in the body.
    pub problem_details: bool,
}

/// Where keys are and what they look like.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct KeyDocument {
    /// Whether a request must have one.
    pub mode: KeyMode,
    /// The header that holds it.
    pub header: String,
    /// Other headers that may.
    pub aliases: Vec<String>,
    /// Where in a JSON body it may be.
    pub pointer: Option<String>,
    /// Whether it must be quoted.
    pub quoted: bool,
    /// Whether it may be any printable text.
    pub raw: bool,
    /// The fewest characters.
    pub length_min: usize,
    /// The most characters.
    pub length_max: usize,
    /// What is expected, for people.
    pub format: String,
    /// The regular expression that it matches as a whole.
    pub pattern: Option<String>,
    /// The header that says when the request was sent first.
    pub first_sent: Option<String>,
    /// How long ago that may be.
    pub first_sent_window: Option<SpanDocument>,
    /// Whether the key is the id that a sender of webhooks gives its event.
    pub webhook: bool,
}

/// What a key is unique within.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct ScopeDocument {
    /// What tells callers apart: `credentials`, `header:NAME`, `cookie:NAME`, `jwt:CLAIM`, `extract` or `none`; of a
    /// list the first that says something.
    pub principal: PrincipalNames,
    /// The headers that hold credentials.
    pub credential_headers: Vec<String>,
    /// What becomes of callers that have no principal.
    pub anonymous: Anonymous,
    /// What the same key on another endpoint is.
    pub endpoint: Endpoint,
    /// Whether hosts are told apart.
    pub host: bool,
}

/// What makes two requests the same.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct FingerprintDocument {
    /// The parts of a request that count; none when only the key does.
    pub counts: &'static [&'static str],
    /// The headers that count beside the content type.
    pub headers: Vec<String>,
    /// The only values of a JSON body that count; none named, all do.
    pub json_include: Vec<String>,
    /// The values of a JSON body that do not count.
    pub json_exclude: Vec<String>,
    /// Whether compressed bodies are decoded first.
    pub decoded: bool,
}

/// What some statuses mean.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct OutcomeDocument {
    /// A class such as `2xx`, one status, or the name of a gRPC status.
    pub statuses: String,
    /// `pin`, `release` or `uncertain`.
    pub outcome: &'static str,
}

/// A length of time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct SpanDocument {
    /// For people: `24h`.
    pub text: String,
    /// For programs: `P1D`.
    pub iso_8601: String,
}

/// How much is taken and kept.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct LimitsDocument {
    /// The largest request body.
    pub body_bytes_max: usize,
    /// The largest response that is kept.
    pub outcome_bytes_max: usize,
    /// How often one key may be sent, as in `10/1m`.
    pub attempts_per_key: Option<String>,
    /// How many operations of one caller run at a time.
    pub open_claims_max: u32,
    /// How many bytes of answers are kept for one caller.
    pub stored_bytes_max: Option<u64>,
}

/// What of an answer is replayed, and how that is marked.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct ReplayDocument {
    /// The header that is `true` on a replay.
    pub marker: String,
    /// Whether it is `false` on first answers.
    pub mark_first: bool,
    /// Whether answers repeat the key.
    pub echo_key: bool,
    /// Whether cookies are replayed.
    pub set_cookie: bool,
    /// Headers that are not.
    pub headers_drop: Vec<String>,
    /// The only headers that are, beside what a body cannot be understood without.
    pub headers_only: Option<Vec<String>>,
    /// The headers that tell whether a retry is worth it.
    pub retry_hints: Vec<String>,
    /// The header that tells whether the key was honoured.
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
        let first_sent = source.first_sent.as_ref();
        Self {
            mode: policy.key,
            header: source.header.to_string(),
            aliases: texts(&source.aliases),
            pointer: source.pointer.as_ref().map(ToString::to_string),
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
        let (counts, headers): (&[_], _) = match rules.what {
            What::Request => {
                (&["method", "path", "query", "content-type", "body"], texts(rules.header_names()))
            }
            What::Key => (&[], Vec::new()),
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
