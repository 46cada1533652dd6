//! Failures as responses: problem details (RFC 9457) with the status of the code.

use axum::Json;
use axum::response::{IntoResponse, Response};
use hapax::http::TYPE_BASE;
use hapax_core::StoreErrorKind;
use http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::failure::{Code, Failure};

/// A refusal.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// A URI that ends with the error's code; the page about it is `docs/errors/CODE.md`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The code in words.
    pub title: String,
    /// The response's status.
    pub status: u16,
    /// The message.
    pub detail: String,
    /// The causes, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
    /// The hint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Problem {
    pub(crate) fn of(failure: &Failure) -> Self {
        let status = status(failure.code());
        Self {
            kind: format!("{TYPE_BASE}{}", failure.code().name()),
            title: failure.code().name().replace('-', " "),
            status: status.as_u16(),
            detail: failure.message().to_owned(),
            causes: failure.causes().collect(),
            hint: failure.advice().map(str::to_owned),
        }
    }

    /// The code at the end of the type.
    pub fn code(&self) -> &str {
        self.kind.rsplit('/').next().unwrap_or_default()
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let problem = Problem::of(&self);
        let mut response = (status(self.code()), Json(&problem)).into_response();
        // The console renders it as a page.
        response.extensions_mut().insert(problem);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.code() == Code::TokenInvalid {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"hapax\""));
        }
        response
    }
}

/// The HTTP status of a code.
pub(crate) const fn status(code: Code) -> StatusCode {
    match code {
        Code::KeyInvalid | Code::InputInvalid | Code::Store(StoreErrorKind::Invalid) => {
            StatusCode::BAD_REQUEST
        }
        Code::TokenInvalid => StatusCode::UNAUTHORIZED,
        Code::RequestForged => StatusCode::FORBIDDEN,
        Code::RecordMissing | Code::RouteMissing => StatusCode::NOT_FOUND,
        Code::MethodRefused => StatusCode::METHOD_NOT_ALLOWED,
        Code::RecordAmbiguous
        | Code::RecordUnreadable
        | Code::RecordChanged
        | Code::InProgress
        | Code::NotUncertain
        | Code::NotConfirmed => StatusCode::CONFLICT,
        Code::TooLarge | Code::Store(StoreErrorKind::TooLarge) => StatusCode::PAYLOAD_TOO_LARGE,
        Code::HostUnknown => StatusCode::MISDIRECTED_REQUEST,
        Code::Store(_)
        | Code::AuditFailed
        | Code::StoreMissing
        | Code::StoreDamaged
        | Code::StoreNotShared
        | Code::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
