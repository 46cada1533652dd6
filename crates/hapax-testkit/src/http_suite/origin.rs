//! [`Origin`]: the service behind the layer. It answers by script and records every execution.
//!
//! It is the other side of the layer and knows nothing of idempotency.

mod body;

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::TRAILER;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri};
use http_body::Body;
use http_body_util::BodyExt;
use parking_lot::Mutex;
use tokio::sync::watch;
use tower_service::Service;

pub use body::OriginBody;

use super::case::{Failure, Line, Script};

/// A service that answers by script and records its executions. Clones share everything.
///
/// It accepts any request body, so it can be called by a layer in the same process or be served for a proxy.
#[derive(Clone)]
pub struct Origin {
    shared: Arc<Shared>,
}

/// One execution, as recorded.
#[derive(Clone, Debug)]
pub struct Execution {
    /// The method.
    pub method: Method,
    /// Path and query, and the authority where the request names it there.
    pub uri: Uri,
    /// All header fields.
    pub headers: HeaderMap,
    /// The body; `None` when it was cut off, or has not been read to its end yet.
    pub body: Option<Bytes>,
}

struct Shared {
    scripts: Vec<Script>,
    ledger: Mutex<Vec<Execution>>,
    /// How many executions have begun.
    begun: watch::Sender<usize>,
    /// Executions up to this one are no longer held.
    released: watch::Sender<usize>,
}

impl Origin {
    /// Answers the first execution with the first script, and so on; the last one repeats. Without a script,
    /// execution N is answered with 201, `Location: /orders/N` and the text `order N`.
    pub fn new(scripts: Vec<Script>) -> Self {
        let (begun, released) = (watch::Sender::new(0), watch::Sender::new(0));
        Self { shared: Arc::new(Shared { scripts, ledger: Mutex::default(), begun, released }) }
    }

    /// How many executions have begun.
    pub fn runs(&self) -> usize {
        *self.shared.begun.borrow()
    }

    /// Every execution so far, in the order in which they began.
    pub fn executions(&self) -> Vec<Execution> {
        self.shared.ledger.lock().clone()
    }

    /// Completes when so many executions have begun.
    pub async fn until_runs(&self, runs: usize) {
        // The sender lives as long as `self` does, so waiting cannot fail.
        let _ = self.shared.begun.subscribe().wait_for(|begun| *begun >= runs).await;
    }

    /// Releases every execution that is held now.
    pub fn release(&self) {
        let begun = self.runs();
        self.shared.released.send_replace(begun);
    }

    /// Records a new execution. Returns its number, from 1.
    fn begin(&self, execution: Execution) -> usize {
        let mut ledger = self.shared.ledger.lock();
        ledger.push(execution);
        let number = ledger.len();
        self.shared.begun.send_replace(number);
        number
    }

    fn script(&self, number: usize) -> Script {
        let scripts = &self.shared.scripts;
        match scripts.get(number - 1).or(scripts.last()) {
            Some(script) => script.clone(),
            None => Script {
                headers: [("Content-Type", "text/plain"), ("Location", &*format!("/orders/{number}"))]
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .into(),
                body: super::case::Content(format!("order {number}").into()),
                ..Script::default()
            },
        }
    }

    async fn answer(self, number: usize) -> Response<OriginBody> {
        let script = self.script(number);
        if script.hold {
            let mut released = self.shared.released.subscribe();
            let _ = released.wait_for(|released| *released >= number).await;
        }
        if script.fail == Some(Failure::Panic) {
            panic!("the script lets the origin panic");
        }
        respond(&script).unwrap_or_else(|reason| {
            let mut response = Response::new(OriginBody::whole(format!("bad script: {reason}").into()));
            *response.status_mut() = http::StatusCode::NOT_IMPLEMENTED;
            response
        })
    }
}

fn respond(script: &Script) -> Result<Response<OriginBody>, http::Error> {
    let content = script.body.0.clone();
    let body = match script.fail {
        Some(Failure::Cut) => OriginBody::cut(content),
        _ if script.stream || !script.trailers.is_empty() => {
            OriginBody::streamed(content, fields(&script.trailers)?)
        }
        _ => OriginBody::whole(content),
    };
    let mut response = Response::builder().status(script.status.unwrap_or(201)).body(body)?;
    response.headers_mut().extend(fields(&script.headers)?);
    if !script.trailers.is_empty() {
        // HTTP/1.1 sends only those trailers that are named.
        let names: Vec<&str> = script.trailers.iter().map(|(name, _)| name.as_str()).collect();
        response.headers_mut().insert(TRAILER, HeaderValue::try_from(names.join(", "))?);
    }
    Ok(response)
}

/// Header lines as a map; repeated ones stay separate.
pub(super) fn fields(lines: &[Line]) -> Result<HeaderMap, http::Error> {
    let mut map = HeaderMap::new();
    for (name, value) in lines {
        map.append(HeaderName::try_from(name)?, HeaderValue::from_bytes(value.as_bytes())?);
    }
    Ok(map)
}

impl<B> Service<Request<B>> for Origin
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Response = Response<OriginBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let origin = self.clone();
        let (head, body) = request.into_parts();
        let is_head = head.method == Method::HEAD;
        let number =
            origin.begin(Execution { method: head.method, uri: head.uri, headers: head.headers, body: None });
        Box::pin(async move {
            let read = body.collect().await.ok().map(|read| read.to_bytes());
            origin.shared.ledger.lock()[number - 1].body = read;
            let answer = origin.answer(number).await;
            Ok(if is_head { answer.map(|_| OriginBody::whole(Bytes::new())) } else { answer })
        })
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Origin").field("runs", &self.runs()).finish_non_exhaustive()
    }
}
