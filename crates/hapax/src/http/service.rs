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
use super::rules::Rules;
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
    Unkeyed(usize),
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
                if let Some(problem) = named_by_connection(fields, policy) {
                    return Passage::Refused(index, problem);
                }
                match policy.key_source.in_headers(fields) {
                    Err(fault) => Passage::Refused(index, Problem::of(Code::KeyInvalid, fault.detail())),
                    Ok(None) if !policy.key_source.may_be_in_body(fields) => match policy.key {
                        KeyMode::Required => Passage::Refused(index, policy.key_missing()),
                        KeyMode::Optional | KeyMode::Off => Passage::Unkeyed(index),
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
            Passage::Unkeyed(route) => {
                let is_claimed = request.extensions().get::<engine::Context>().is_some();
                let exchange = Exchange::new(self.shared.clone(), route, request.extensions());
                let answer = self.inner.call(request.map(RequestBody::passed));
                // What the handler says about its answer is for the layer around this one that has claimed it.
                if is_claimed {
                    ResponseFuture::passed(answer)
                } else {
                    ResponseFuture::unkeyed(answer, exchange)
                }
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

/// The refusal of a request whose `Connection` names the field of its key or of its principal (K-10). Such a field is for
/// one connection only: a proxy takes it off, and what is left would run without protection, or as another caller's.
fn named_by_connection(fields: Fields<'_>, policy: &Rules) -> Option<Problem> {
    if !fields.may_have(&CONNECTION) {
        return None;
    }
    tokens(fields, &CONNECTION).find_map(|name| {
        if policy.key_source.reads(name) {
            let detail = "`Connection` names the field of the key, which is then for one connection only";
            Some(Problem::of(Code::KeyInvalid, detail).with_same_key())
        } else if policy.scope.reads(name) {
            let detail = "`Connection` names the field that says who the caller is, which is then for one connection only";
            Some(Problem::of(Code::PrincipalMissing, detail))
        } else {
            None
        }
    })
}

/// Whether the client asks for another protocol than HTTP on this connection. An offer to go on in HTTP/2 or TLS is
/// none: servers decline it, and a request that came with it would lose its protection.
fn is_upgrade(fields: Fields<'_>) -> bool {
    let begins = |protocol: &[u8], start: &[u8]| {
        protocol.get(..start.len()).is_some_and(|found| found.eq_ignore_ascii_case(start))
    };
    let is_http = |protocol: &[u8]| {
        protocol.eq_ignore_ascii_case(b"h2c") || begins(protocol, b"tls/") || begins(protocol, b"http/")
    };
    fields.may_have(&UPGRADE)
        && tokens(fields, &CONNECTION).any(|token| token.eq_ignore_ascii_case(b"upgrade"))
        && tokens(fields, &UPGRADE).any(|protocol| !protocol.is_empty() && !is_http(protocol))
}

/// The items of a field that is a list. Bytes that are no text in one of them hide no other.
fn tokens<'a>(fields: Fields<'a>, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> {
    fields.lines(name).flat_map(|line| line.as_bytes().split(|byte| *byte == b',')).map(<[u8]>::trim_ascii)
}
