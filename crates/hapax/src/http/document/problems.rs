//! The refusals that a route's policy can lead to, with their statuses.

use http::StatusCode;
use serde::Serialize;

use crate::http::policy::{Classifier, EarlyData, KeyMode};
use crate::http::problem::{Code, RefusalShapeName};
use crate::http::rules::Rules;
use crate::policy::ExpiredKeys;

/// One refusal of a route.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct ProblemDocument {
    /// Its code.
    pub code: &'static str,
    /// The `type` of the problem details.
    #[serde(rename = "type")]
    pub type_uri: String,
    /// Its title, for people.
    pub title: &'static str,
    /// Its usual status.
    pub status: u16,
    /// Further statuses in special cases.
    pub statuses_further: Vec<u16>,
    /// Its gRPC status, on gRPC routes.
    pub grpc_status: Option<i32>,
    /// Whether the same request may succeed after a while.
    pub retryable: bool,
    /// Whether a later attempt should carry the same key.
    pub retry_with_same_key: bool,
    /// Whether it is certain that a new key cannot repeat the operation.
    pub safe_new_key: bool,
    /// An example of the body, unless it is problem details.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<serde_json::Value>,
}

pub(super) fn of(policy: &Rules) -> Vec<ProblemDocument> {
    if policy.key == KeyMode::Off {
        return Vec::new();
    }
    let codes = Code::ALL.into_iter().filter(|code| can_happen(policy, *code));
    let shape = &policy.refusals.shape;
    let has_example = shape.name() != Some(RefusalShapeName::Problem);
    let document = |code: Code| ProblemDocument {
        code: code.name(),
        type_uri: format!("{}{}", policy.refusals.type_base, code.name()),
        title: code.title(),
        status: policy.refusals.usual_status(code).as_u16(),
        statuses_further: further_statuses(policy, code).iter().map(StatusCode::as_u16).collect(),
        grpc_status: (policy.classifier == Classifier::Grpc).then(|| code.grpc()),
        retryable: code.retryable(),
        retry_with_same_key: code.retry_with_same_key(),
        safe_new_key: code.safe_new_key(),
        example: has_example.then(|| {
            let kind = format!("{}{}", policy.refusals.type_base, code.name());
            shape.example(code, policy.refusals.usual_status(code), &kind)
        }),
    };
    codes.map(document).collect()
}

fn can_happen(policy: &Rules, code: Code) -> bool {
    match code {
        Code::KeyMissing => policy.key == KeyMode::Required,
        Code::KeyExpired => {
            policy.engine.expired_keys == ExpiredKeys::Refuse || policy.key_source.first_sent.is_some()
        }
        // Only a proxy returns it.
        Code::UpstreamUnavailable => false,
        Code::PrincipalMissing => policy.scope.may_refuse(),
        Code::TooEarly => policy.early_data == EarlyData::Refuse,
        Code::CodingUnsupported => policy.decoding().is_some(),
        Code::SignatureInvalid => policy.is_webhook(),
        Code::NotRepeatable => policy.result_header.is_some(),
        Code::KeyInvalid
        | Code::KeyReused
        | Code::InProgress
        | Code::Uncertain
        | Code::ResultUnavailable
        | Code::TooLarge
        | Code::RateLimited
        // Also if the route lets requests pass when the store is down: a request known to be running is refused.
        | Code::StoreUnavailable
        | Code::Draining
        | Code::Overloaded
        | Code::DigestMismatch
        | Code::BodyIncomplete => true,
    }
}

/// The refusal of the request whose own run was cut off has another status than that of a later one.
fn further_statuses(policy: &Rules, code: Code) -> &'static [StatusCode] {
    match code {
        Code::InProgress if policy.engine.deadline.is_some() => &[StatusCode::GATEWAY_TIMEOUT],
        Code::Uncertain if policy.refusals.chosen(code).is_none() => {
            &[StatusCode::INTERNAL_SERVER_ERROR, StatusCode::BAD_GATEWAY]
        }
        Code::KeyExpired if policy.key_source.first_sent.is_some() => &[StatusCode::PRECONDITION_FAILED],
        _ => &[],
    }
}
