//! Which refusals a route's policy can lead to, and with which statuses.

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
    /// Its name.
    pub code: &'static str,
    /// The `type` of the problem details.
    #[serde(rename = "type")]
    pub type_uri: String,
    /// What it is called, for people.
    pub title: &'static str,
    /// Its usual status.
    pub status: u16,
    /// Statuses that it has in special cases.
    pub statuses_further: Vec<u16>,
    /// Its status in gRPC, on routes that speak it.
    pub grpc_status: Option<i32>,
    /// Whether the same request may succeed after a while.
    pub retryable: bool,
    /// Whether a later attempt should carry the same key.
    pub retry_with_same_key: bool,
    /// Whether it is certain that another key cannot repeat the operation.
    pub safe_new_key: bool,
    /// What its body looks like, as far as that is not problem details.
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
        statuses_further: further(policy, code).iter().map(StatusCode::as_u16).collect(),
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
        // Of a proxy, which this layer is not.
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
        // Also where requests pass a store that is down: not those that are known to run.
        | Code::StoreUnavailable
        | Code::Draining
        | Code::Overloaded
        | Code::DigestMismatch
        | Code::BodyIncomplete => true,
    }
}

/// A request that was cut off itself learns it by another status than one that comes later.
fn further(policy: &Rules, code: Code) -> &'static [StatusCode] {
    match code {
        Code::InProgress if policy.engine.deadline.is_some() => &[StatusCode::GATEWAY_TIMEOUT],
        Code::Uncertain if policy.refusals.chosen(code).is_none() => {
            &[StatusCode::INTERNAL_SERVER_ERROR, StatusCode::BAD_GATEWAY]
        }
        Code::KeyExpired if policy.key_source.first_sent.is_some() => &[StatusCode::PRECONDITION_FAILED],
        _ => &[],
    }
}
