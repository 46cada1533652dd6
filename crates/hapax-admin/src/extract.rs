//! Extractors that refuse invalid requests with a problem document.

use std::sync::Arc;

use axum::extract::{Form, FromRequest, FromRequestParts, Path, Query, Request};
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, Method};
use serde::de::DeserializeOwned;

use super::listener::Shared;
use crate::failure::{Code, Failure};

/// The parameters in the query of a URL.
#[derive(Debug)]
pub(crate) struct QueryParams<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for QueryParams<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        Query::try_from_uri(&parts.uri)
            .map(|Query(asked)| Self(asked))
            .map_err(|error| invalid("the query is invalid").because(error.body_text()))
    }
}

/// A JSON body of bounded size.
#[derive(Debug)]
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<Shared>> for JsonBody<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, shared: &Arc<Shared>) -> Result<Self, Failure> {
        let is_json =
            request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).is_some_and(|kind| {
                kind.split(';').next().is_some_and(|it| it.trim().eq_ignore_ascii_case("application/json"))
            });
        if !is_json {
            return Err(
                invalid("the body is not declared as JSON").hint("send Content-Type: application/json")
            );
        }
        let body = body(request, shared.options.body_bytes_max).await?;
        if !body.trim_ascii_start().starts_with(b"{") {
            // serde would also accept the members as an array.
            return Err(invalid("the body is not a JSON object"));
        }
        let sent = serde_json::from_slice(&body);
        sent.map(Self).map_err(|error| invalid("the body is invalid").because(error))
    }
}

/// A form of bounded size.
#[derive(Debug)]
pub(crate) struct FormBody<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<Shared>> for FormBody<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, shared: &Arc<Shared>) -> Result<Self, Failure> {
        let body = body(request, shared.options.body_bytes_max).await?;
        let mut form = Request::new(axum::body::Body::from(body));
        *form.method_mut() = Method::POST;
        form.headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        let filled = Form::from_request(form, &()).await;
        filled
            .map(|Form(filled)| Self(filled))
            .map_err(|error| invalid("the form is invalid").because(error.body_text()))
    }
}

/// The id in a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Id(pub(crate) hapax_core::RecordId);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let digits = Path::<String>::from_request_parts(parts, state).await.map(|Path(digits)| digits);
        digits
            .ok()
            .and_then(|digits| hapax_core::RecordId::parse(&digits.to_ascii_lowercase()))
            .map(Self)
            .ok_or_else(|| invalid("this is not a record's id").hint("an id has 64 hexadecimal digits"))
    }
}

async fn body(request: Request, bytes_max: usize) -> Result<bytes::Bytes, Failure> {
    axum::body::to_bytes(request.into_body(), bytes_max).await.map_err(|error| {
        let source = std::error::Error::source(&error);
        if source.is_some_and(|source| source.is::<http_body_util::LengthLimitError>()) {
            Failure::new(Code::TooLarge, format!("the body has more than {bytes_max} bytes"))
                .hint("raise admin.body_bytes_max if such bodies are expected")
        } else {
            invalid("the body is incomplete")
        }
    })
}

fn invalid(what: &str) -> Failure {
    Failure::new(Code::InputInvalid, what)
}
