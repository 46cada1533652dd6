//! A request is looked at when something has happened to it, and not for what it does itself.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use hapax::http::IdempotencyLayer;
use hapax::{Hapax, MemoryStore};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use tokio::io::AsyncWriteExt;
use tokio::sync::Notify;
use tower_layer::Layer;
use tower_service::Service;

use super::rig::{Origin, Rig, Setup, read_until};
use crate::proxy::Forward;
use crate::proxy::received::Received;

/// Holds answers back that it has as a whole, and counts how often it is asked for them.
#[derive(Clone)]
struct Counting<S> {
    inner: S,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    polls: AtomicUsize,
    is_whole: Notify,
    goes_on: Notify,
}

impl<S, B> Service<Request<Received>> for Counting<S>
where
    S: Service<Request<Received>, Response = Response<B>, Error = Infallible>,
    S::Future: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Debug,
{
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Received>) -> Self::Future {
        let (answer, seen) = (self.inner.call(request), Arc::clone(&self.seen));
        let counted = Arc::clone(&seen);
        let mut held = Box::pin(async move {
            let Ok(answer) = answer.await;
            let (parts, body) = answer.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            seen.is_whole.notify_one();
            seen.goes_on.notified().await;
            Ok(Response::from_parts(parts, Full::new(body)))
        });
        Box::pin(poll_fn(move |cx| {
            counted.polls.fetch_add(1, Ordering::Relaxed);
            held.as_mut().poll(cx)
        }))
    }
}

#[tokio::test]
async fn a_request_is_asked_for_once_and_once_more_when_its_answer_is_there() {
    let origin = Origin::ok().await;
    let forward = Forward::new(&[origin.url().parse().unwrap()], &Setup::default().upstream).unwrap();
    let hapax = Hapax::new(MemoryStore::new());
    let seen = Arc::<Seen>::default();
    let inner = IdempotencyLayer::new(&hapax).layer(forward);
    let rig = Rig::serve(Counting { inner, seen: seen.clone() }, Setup::default()).await;
    let mut client = rig.connect().await;
    // The first has no connection to the origin yet, and opens one.
    for (number, field) in ["X-Other", "X-Other", "Idempotency-Key"].into_iter().enumerate() {
        let request = format!(
            "POST /orders HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n{field}: k{number}\r\n\r\n{{}}"
        );
        client.write_all(request.as_bytes()).await.unwrap();
        seen.is_whole.notified().await;
        // Whoever was woken in between has its turn.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        let polls = seen.polls.swap(0, Ordering::Relaxed);
        assert!(number == 0 || polls == 2, "{field}: {polls}");
        seen.goes_on.notify_one();
        read_until(&mut client, b"\r\n\r\nok").await;
        seen.polls.store(0, Ordering::Relaxed);
    }
}
