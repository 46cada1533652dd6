//! For axum: extractors of a request's key and of the context of its attempt, and the layer with axum's own bodies.

mod layer;

use std::convert::Infallible;

use axum::extract::{FromRequestParts, OptionalFromRequestParts};
use axum::response::{IntoResponse, Response};
use http::request::Parts;

use super::IdempotencyKey;
use super::problem::{Code, Problem, RefusalRules};
use super::protection::Protection;
use crate::engine::Context;

pub use self::layer::{AxumIdempotency, AxumIdempotencyLayer, AxumResponseFuture};

/// The request is not protected: it has no key, or no [`IdempotencyLayer`](super::IdempotencyLayer) covers it. Rejected
/// like a missing key. Extract an `Option` if the key is optional.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the request has no idempotency key")]
pub struct NotProtected;

impl IntoResponse for NotProtected {
    fn into_response(self) -> Response {
        let problem = Problem::of(Code::KeyMissing, "this operation needs an idempotency key");
        problem.response(&RefusalRules::default()).map(axum::body::Body::from)
    }
}

macro_rules! extract {
    ($extracted:ty, $found_in:expr) => {
        impl<S: Sync> FromRequestParts<S> for $extracted {
            type Rejection = NotProtected;

            async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, NotProtected> {
                $found_in(parts).cloned().ok_or(NotProtected)
            }
        }

        impl<S: Sync> OptionalFromRequestParts<S> for $extracted {
            type Rejection = Infallible;

            async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Option<Self>, Infallible> {
                Ok($found_in(parts).cloned())
            }
        }
    };
}

extract!(IdempotencyKey, key_of);
extract!(Context, context_of);

fn key_of(parts: &Parts) -> Option<&IdempotencyKey> {
    parts.extensions.get()
}

fn context_of(parts: &Parts) -> Option<&Context> {
    Protection::of(&parts.extensions)?.context()
}
