//! The HTTP exchange without I/O: head and body in, decision out; response in, answer out. For hosts that serve HTTP
//! in their own way, such as a proxy or a binding of another language.
//!
//! The tower service is such a host. One request goes through three calls:
//!
//! 1. [`IdempotencyLayer::exchange`] reads the head. The request passes, is answered, or is [covered](Entry::Covered).
//! 2. [`Exchange::enter`] reads the body and claims the key. The request passes, is answered from its record or with a
//!    refusal, or [runs](Step::Run).
//! 3. [`Running::run`] executes the request so that it outlives its connection, records what its response means for the
//!    key, and returns the answer. A host that executes requests itself, and does not stop when a client disconnects,
//!    calls [`Running::finish`] or [`Running::fail`] afterwards.
//!
//! Nothing here opens a connection or spawns a thread: the host polls, and the body is the host's own type. A Tokio runtime
//! has to be there for timers.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use std::convert::Infallible;
//!
//! use bytes::Bytes;
//! use hapax::http::exchange::{Entry, Step};
//! use hapax::http::{IdempotencyLayer, RequestBody, ResponseBody};
//! use hapax::{Hapax, MemoryStore};
//! use http::{Request, Response};
//! use http_body_util::Full;
//!
//! type Body = Full<Bytes>;
//!
//! /// A toy host with one handler.
//! async fn serve(layer: &IdempotencyLayer, request: Request<Body>) -> Response<ResponseBody<Body>> {
//!     let exchange = match layer.exchange(&request) {
//!         Entry::Pass(passing) => return passing.finish(handle(request.map(RequestBody::from)).await),
//!         Entry::Answer(response) => return response.map(ResponseBody::from),
//!         Entry::Covered(exchange) => exchange,
//!     };
//!     match exchange.enter(request).await {
//!         Step::Pass(request, passing) => passing.finish(handle(request).await),
//!         Step::Answer(response) => response,
//!         Step::Run(request, running) => {
//!             let Ok(response) = running.run(async || Ok::<_, Infallible>(handle(request).await)).await;
//!             response
//!         }
//!     }
//! }
//!
//! async fn handle(request: Request<RequestBody<Body>>) -> Response<Body> {
//!     let answer = format!("paid: {}", request.uri().path());
//!     Response::new(answer.into())
//! }
//!
//! let layer = IdempotencyLayer::new(Hapax::new(MemoryStore::new()));
//! let pay = || Request::post("/payments").header("Idempotency-Key", "order-123").body(Body::from("{}")).unwrap();
//!
//! assert!(!serve(&layer, pay()).await.headers().contains_key("x-idempotent-replayed"));
//! assert_eq!(serve(&layer, pay()).await.headers()["x-idempotent-replayed"], "true");
//! # });
//! ```
// What fails before the claim has executed nothing and stored nothing.

mod conclude;
mod entry;
mod prepare;
mod refusal;
mod responder;
mod restate;
mod running;

use std::fmt;

use bytes::Bytes;
use hapax_core::Key;
use http::{Request, Response};
use http_body::Body;

use self::prepare::{Asked, Prepared, Stop};
use self::responder::Responder;
pub use self::running::Running;
use self::running::{Permission, RequestFields};
use super::IdempotencyKey;
use super::body::{RequestBody, ResponseBody};
use super::classify::{self, Outcome};
use super::grpc;
use super::layer::IdempotencyLayer;
use super::policy::OnStoreError;
use super::protection::Protection;
use crate::engine::{Claimed, Operation, Refusal, Unprotected};
use crate::observe;

/// What the head of a request decides.
#[derive(Debug)]
#[must_use]
pub enum Entry {
    /// The request is not protected. The service gets it as it is, and its response goes through [`Passing::finish`].
    Pass(Passing),
    /// The request is refused with this response.
    Answer(Response<Bytes>),
    /// The request has a key, or may have one in its body.
    Covered(Exchange),
}

/// One covered request, before its body is read.
#[derive(Debug)]
#[must_use = "nothing is decided until it is entered"]
pub struct Exchange {
    responder: Responder,
    /// None where the key may only be in the body.
    key: Option<Key>,
}

/// What a covered request comes to.
#[must_use]
pub enum Step<B, R> {
    /// The request is not protected, or a layer around this one has claimed it. The service gets it, and its response
    /// goes through [`Passing::finish`].
    Pass(Request<RequestBody<B>>, Passing),
    /// The answer: a replay, or a refusal.
    Answer(Response<ResponseBody<R>>),
    /// The key is claimed: the service gets the request now.
    Run(Request<RequestBody<B>>, Box<Running>),
}

/// A request that passes without protection.
#[derive(Debug)]
#[must_use = "its `finish` removes fields that are not for clients"]
pub struct Passing {
    /// None where the response is left as it is: it is for a layer around this one, or was never covered.
    responder: Option<Responder>,
}

/// Without the request and the answer: they hold credentials and the key.
impl<B, R> fmt::Debug for Step<B, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pass(..) => f.write_str("Pass"),
            Self::Answer(response) => f.debug_tuple("Answer").field(&response.status()).finish(),
            Self::Run(_, running) => f.debug_tuple("Run").field(running).finish(),
        }
    }
}

impl IdempotencyLayer {
    /// Begins the exchange of one request by its head; see the [module](self).
    pub fn exchange<B>(&self, request: &Request<B>) -> Entry {
        entry::enter(&self.shared, request)
    }
}

impl Exchange {
    /// Reads the body and claims the key. Dropped before its end, it leaves no claim behind: the claim is cancelled.
    pub async fn enter<B, R>(self, request: Request<B>) -> Step<B, R>
    where
        B: Body<Data = Bytes> + Send,
    {
        let (parts, body) = request.into_parts();
        let Self { mut responder, key } = self;
        match responder.prepare(&parts, body, key).await {
            // Boxed: most requests need no room for what comes later.
            Ok(Prepared::Asked(asked)) => Box::pin(responder.claim(parts, asked)).await,
            Ok(Prepared::Recalled(recorded)) => Step::Answer(responder.replay(&parts.headers, recorded)),
            Ok(Prepared::Unkeyed(read)) => {
                let passing = Passing::without_key(responder, &parts.extensions);
                Step::Pass(Request::from_parts(parts, RequestBody::read(read)), passing)
            }
            Ok(Prepared::Claimed(read)) => {
                Step::Pass(Request::from_parts(parts, RequestBody::read(read)), Passing::UNTOUCHED)
            }
            Err(Stop::Refused(problem)) => Step::Answer(responder.refuse(&problem)),
            Err(Stop::Answered(mut response)) => {
                responder.count(observe::OutcomeLabel::Refused);
                response.extensions_mut().get_or_insert(Outcome::Release);
                Step::Answer(response.map(ResponseBody::from))
            }
        }
    }
}

impl Responder {
    async fn claim<B, R>(self, mut parts: http::request::Parts, asked: Box<Asked>) -> Step<B, R> {
        let Asked { read, key, scoped, fingerprint, open } = *asked;
        let (policy, engine) = (self.policy(), self.engine());
        let (id, principal) = (scoped.id, scoped.scope.principal_hash().copied());
        let operation = Operation {
            expires_at: policy.engine.forgets_at(&key),
            key: scoped,
            fingerprint,
            policy: self.engine_policy(),
            reconcile: policy.reconcile.clone(),
            label: Some(self.route().label.clone()),
            // Otherwise the limits on new operations would have refused it.
            is_known: open.is_none(),
        };
        let permission = match engine.claim_unrecalled(Box::new(operation)).await {
            Ok(Claimed::Run(permit)) => Permission::Claimed(permit),
            Ok(Claimed::Replay(recorded)) => return Step::Answer(self.replay(&parts.headers, recorded)),
            Err(Refusal::StoreFailed(error)) if policy.on_store_error == OnStoreError::Pass => {
                let why = error.to_string();
                match engine.permit_unprotected(id, &fingerprint, error) {
                    Ok(Unprotected::Run(permit)) => {
                        tracing::warn!(route = %self.route().label, error = why, "the store failed; a request runs unprotected");
                        Permission::Unprotected(permit)
                    }
                    Ok(Unprotected::Replay(recorded)) => {
                        return Step::Answer(self.replay(&parts.headers, recorded));
                    }
                    Err(refusal) => return Step::Answer(self.refuse(&refusal::of(&refusal).about(id))),
                }
            }
            Err(refusal) => return Step::Answer(self.refuse(&refusal::of(&refusal).about(id))),
        };
        grpc::lift_deadline(&mut parts.headers);
        let fields = RequestFields::of(&parts.headers, policy.replay.echo_key.as_ref());
        match &permission {
            Permission::Claimed(permit) => {
                parts.extensions.insert(IdempotencyKey(key));
                parts.extensions.insert(Protection::Claimed(permit.context()));
            }
            // A claim of a layer around this one still holds.
            Permission::Unprotected(_) => {
                parts.extensions.get_or_insert(Protection::Unprotected(id));
            }
        }
        let running = Running { responder: self, permission, fields, principal, open };
        Step::Run(Request::from_parts(parts, RequestBody::read(read)), Box::new(running))
    }
}

impl Passing {
    const UNTOUCHED: Self = Self { responder: None };

    /// A covered request without a key. What the service says about its response is for a layer around this one, if
    /// that has claimed the request.
    fn without_key(responder: Responder, extensions: &http::Extensions) -> Self {
        let is_claimed = Protection::of(extensions).and_then(Protection::context).is_some();
        Self { responder: (!is_claimed).then_some(responder) }
    }

    /// The answer for the client, from the response of the service.
    pub fn finish<R>(self, mut response: Response<R>) -> Response<ResponseBody<R>> {
        let Some(responder) = self.responder else { return response.map(ResponseBody::passed) };
        classify::remove_override(response.headers_mut());
        match responder.restated(&mut response, None) {
            Some(restated) => restated.map(ResponseBody::from),
            None => response.map(ResponseBody::passed),
        }
    }
}
