//! [`Idempotent`]: any tower service, protected. For queue workers, command-line jobs and calls of any protocol; HTTP has a
//! layer of its own in `hapax::http`.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use hapax::service::IdempotentLayer;
//! use hapax::{Hapax, MemoryStore};
//! use tower::{Service as _, ServiceBuilder, ServiceExt as _};
//!
//! #[derive(Clone, serde::Serialize)]
//! struct Invoice {
//!     number: String,
//!     cents: u64,
//! }
//!
//! let hapax = Hapax::new(MemoryStore::new());
//! let once = hapax.clone();
//! let mut worker = ServiceBuilder::new()
//!     .layer(IdempotentLayer::new(move |invoice: &Invoice| once.once("send-invoice", &*invoice.number).input(invoice)))
//!     .service_fn(|invoice: Invoice| async move { Ok::<_, std::io::Error>(format!("sent {}", invoice.number)) });
//!
//! let invoice = Invoice { number: "2026-1".into(), cents: 1200 };
//! assert!(!worker.ready().await.unwrap().call(invoice.clone()).await.unwrap().replayed);
//! assert!(worker.ready().await.unwrap().call(invoice).await.unwrap().replayed);
//!
//! // The same record, read by `once()` with the same scope and key.
//! let again = Invoice { number: "2026-1".into(), cents: 1200 };
//! let done = hapax.once("send-invoice", "2026-1").input(&again).run(|_cx| async { Ok::<_, std::io::Error>(String::new()) });
//! assert_eq!(done.await.unwrap().value, "sent 2026-1");
//! # });
//! ```

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use tower_layer::Layer;
use tower_service::Service;

use crate::engine::Context;
use crate::function::{Codec, Done, IntoOutcome, Json, Once, OnceError};

/// Protects the services that it wraps: the first request of an operation is executed, every other one gets its result.
///
/// A closure describes the operation of a request: its scope and key, and all the options of [`Once`].
pub struct IdempotentLayer<R, D, C = Json, A = WithoutContext> {
    describe: D,
    codec: C,
    attach: A,
    request: PhantomData<fn(R)>,
}

/// A service behind an [`IdempotentLayer`]. Its responses are [`Done`], which tells a replay from a run; its errors are
/// [`OnceError`].
pub struct Idempotent<S, R, D, C = Json, A = WithoutContext> {
    inner: S,
    layer: Arc<IdempotentLayer<R, D, C, A>>,
}

/// The handler gets the request alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct WithoutContext;

/// What the handler gets: the request, or what a closure makes of the request and the [`Context`] of its run.
pub trait Attach<R>: Send + Sync + 'static {
    /// The request of the handler.
    type Request;

    /// Makes it.
    fn attach(&self, request: R, context: Context) -> Self::Request;
}

impl<R> Attach<R> for WithoutContext {
    type Request = R;

    fn attach(&self, request: R, _context: Context) -> R {
        request
    }
}

impl<R, T, F: Fn(R, Context) -> T + Send + Sync + 'static> Attach<R> for F {
    type Request = T;

    fn attach(&self, request: R, context: Context) -> T {
        self(request, context)
    }
}

impl<R, D: Fn(&R) -> Once> IdempotentLayer<R, D> {
    /// A layer for requests whose operation `describe` makes, as in `move |job: &Job| hapax.once("job", &*job.id)`.
    ///
    /// Results are recorded as JSON, as [`Once::run`] does.
    pub fn new(describe: D) -> Self {
        Self { describe, codec: Json, attach: WithoutContext, request: PhantomData }
    }
}

impl<R, D, C, A> IdempotentLayer<R, D, C, A> {
    /// Records results in the form of this codec, for types without serde.
    pub fn codec<N>(self, codec: N) -> IdempotentLayer<R, D, N, A> {
        let Self { describe, attach, request, .. } = self;
        IdempotentLayer { describe, codec, attach, request }
    }

    /// Gives the handler the context of its run: `|job, cx| (job, cx)` for a handler that takes both.
    pub fn with_context<N: Attach<R>>(self, attach: N) -> IdempotentLayer<R, D, C, N> {
        let Self { describe, codec, request, .. } = self;
        IdempotentLayer { describe, codec, attach, request }
    }
}

impl<S, R, D: Clone, C: Clone, A: Clone> Layer<S> for IdempotentLayer<R, D, C, A> {
    type Service = Idempotent<S, R, D, C, A>;

    fn layer(&self, inner: S) -> Self::Service {
        Idempotent { inner, layer: Arc::new(self.clone()) }
    }
}

/// The future of an [`Idempotent`]. Dropped after the handler has begun, it leaves the handler running.
pub type IdempotentFuture<T, E> = Pin<Box<dyn Future<Output = Result<Done<T>, OnceError<E>>> + Send>>;

impl<S, R, D, C, A, E> Service<R> for Idempotent<S, R, D, C, A>
where
    S: Service<A::Request> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Response: Send + 'static,
    Result<S::Response, S::Error>: IntoOutcome<Value = S::Response, Error = E>,
    E: Send + 'static,
    R: Send + 'static,
    D: Fn(&R) -> Once + Send + Sync + 'static,
    C: Codec<S::Response> + Clone,
    A: Attach<R>,
{
    type Response = Done<S::Response>;
    type Error = OnceError<E>;
    type Future = IdempotentFuture<S::Response, E>;

    fn poll_ready(&mut self, cx: &mut TaskContext<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(|error| match Err(error).into_result() {
            Err(failure) => OnceError::Failed(failure.into_error()),
            Ok(_) => unreachable!("an error stays one"),
        })
    }

    fn call(&mut self, request: R) -> Self::Future {
        // The one that was polled to readiness.
        let next = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, next);
        let layer = self.layer.clone();
        let codec = layer.codec.clone();
        let once = (layer.describe)(&request);
        let work = move |context| inner.call(layer.attach.attach(request, context));
        Box::pin(once.run_with(codec, work))
    }
}

impl<R, D: Clone, C: Clone, A: Clone> Clone for IdempotentLayer<R, D, C, A> {
    fn clone(&self) -> Self {
        let Self { describe, codec, attach, request } = self;
        let (describe, codec, attach) = (describe.clone(), codec.clone(), attach.clone());
        Self { describe, codec, attach, request: *request }
    }
}

impl<S: Clone, R, D, C, A> Clone for Idempotent<S, R, D, C, A> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), layer: self.layer.clone() }
    }
}

impl<R, D, C, A> fmt::Debug for IdempotentLayer<R, D, C, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotentLayer").finish_non_exhaustive()
    }
}

impl<S: fmt::Debug, R, D, C, A> fmt::Debug for Idempotent<S, R, D, C, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idempotent").field("inner", &self.inner).finish_non_exhaustive()
    }
}
