//! [`Idempotency`]: lets through what is not its business, and begins an exchange for the rest.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hapax_core::Key;
use http::header::{CONNECTION, UPGRADE};
use http::{HeaderName, Request, Response};
use http_body::Body;
use tower_service::Service;

use super::body::{RequestBody, ResponseBody};
use super::canonical::header::Fields;
use super::exchange::Exchange;
use super::future::ResponseFuture;
use super::layer::{Found, Shared, path_of};
use super::policy::KeyMode;
use super::problem::{Code, Problem};
use crate::engine;

/// An HTTP service whose requests are safe to retry; made by [`IdempotencyLayer`](super::IdempotencyLayer).
#[derive(Clone, Debug)]
pub struct Idempotency<S> {
    inner: S,
    shared: Arc<Shared>,
}

/// What is to be done with a request, as far as its head tells.
enum Passage {
    /// It is none of our business.
    Untouched,
    /// It is covered, has no key and needs none.
    Unkeyed,
    Refused(usize, Problem),
    /// It is covered. Its key may yet be in the body.
    Covered(usize, Option<Key>),
}

impl<S> Idempotency<S> {
    pub(super) fn new(inner: S, shared: Arc<Shared>) -> Self {
        Self { inner, shared }
    }

    fn judge<B>(&self, request: &Request<B>) -> Passage {
        let (method, fields) = (request.method(), Fields::of(request.headers()));
        match self.shared.find(method, || path_of(request.uri(), request.extensions())) {
            Found::None => Passage::Untouched,
            // A signature is asked of everybody: what a sender writes into the head excuses nobody (P-03).
            Found::Covered(index) if self.shared.route(index).policy.is_webhook() => {
                Passage::Covered(index, None)
            }
            _ if is_upgrade(fields) => Passage::Untouched,
            Found::Uncovered(index) => {
                let source = &self.shared.route(index).policy.key_source;
                if method.is_safe() || fields.first(&source.header).is_none() {
                    return Passage::Untouched;
                }
                Passage::Refused(index, Problem::of(Code::NotRepeatable, "this method takes no key here"))
            }
            Found::Covered(index) => {
                let route = self.shared.route(index);
                let policy = &route.policy;
                if route.leaves_alone(fields) {
                    return Passage::Untouched;
                }
                match policy.key_source.in_headers(fields) {
                    Err(fault) => Passage::Refused(index, Problem::of(Code::KeyInvalid, fault.detail())),
                    Ok(None) if !policy.key_source.may_be_in_body(fields) => match policy.key {
                        KeyMode::Required => Passage::Refused(index, policy.key_missing()),
                        KeyMode::Optional | KeyMode::Off => Passage::Unkeyed,
                    },
                    Ok(key) => Passage::Covered(index, key),
                }
            }
        }
    }
}

impl<S, B, R> Service<Request<B>> for Idempotency<S>
where
    S: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    R: Body<Data = Bytes> + Send + 'static,
{
    type Response = Response<ResponseBody<R>>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, R, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        match self.judge(&request) {
            Passage::Untouched => ResponseFuture::passed(self.inner.call(request.map(RequestBody::passed))),
            Passage::Unkeyed => {
                let is_claimed = request.extensions().get::<engine::Context>().is_some();
                let answer = self.inner.call(request.map(RequestBody::passed));
                // What the handler says about its answer is for the layer around this one that has claimed it.
                if is_claimed { ResponseFuture::passed(answer) } else { ResponseFuture::unkeyed(answer) }
            }
            Passage::Refused(route, problem) => {
                let exchange = Exchange::new(self.shared.clone(), route, request.extensions());
                ResponseFuture::refused(exchange.refuse(&problem))
            }
            Passage::Covered(route, key) => {
                // The one that is ready runs; its clone takes the next request.
                let next = self.inner.clone();
                let inner = std::mem::replace(&mut self.inner, next);
                let exchange = Exchange::new(self.shared.clone(), route, request.extensions());
                let (parts, body) = request.into_parts();
                ResponseFuture::covered(Box::pin(exchange.answer(inner, parts, body, key)))
            }
        }
    }
}

/// Whether the client asks for another protocol than HTTP on this connection. An offer to go on in HTTP/2 or TLS is
/// none: servers decline it, and a request that came with it would lose its protection.
fn is_upgrade(fields: Fields<'_>) -> bool {
    fn tokens<'a>(fields: Fields<'a>, name: &HeaderName) -> impl Iterator<Item = &'a str> {
        let lines = fields.lines(name).filter_map(|value| value.to_str().ok());
        lines.flat_map(|line| line.split(',')).map(str::trim)
    }
    let is_http = |protocol: &str| {
        protocol.eq_ignore_ascii_case("h2c")
            || protocol.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("tls/"))
            || protocol.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("http/"))
    };
    fields.may_have(&UPGRADE)
        && tokens(fields, &CONNECTION).any(|token| token.eq_ignore_ascii_case("upgrade"))
        && tokens(fields, &UPGRADE).any(|protocol| !protocol.is_empty() && !is_http(protocol))
}
