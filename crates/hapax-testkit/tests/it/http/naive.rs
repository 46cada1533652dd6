//! Surfaces for testing the suite: an origin without a layer, and a small layer for the plain rules with planted
//! defects.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use hapax_core::key::KeyRules;
use hapax_testkit::http_suite::{
    Control, Feature, Gate, Origin, Running, Server, Settings, StartError, Surface,
};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use tower_service::Service;

/// A server that runs until it is dropped.
struct Serving {
    _server: Server,
}

impl Control for Serving {}

async fn serve<S, B>(service: S) -> Result<Running, StartError>
where
    S: Service<Request<hyper::body::Incoming>, Response = Response<B>, Error = Infallible>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<StartError>,
{
    let server = Server::start(service).await?;
    Ok(Running { addr: server.addr(), control: Box::new(Serving { _server: server }) })
}

/// The origin alone. It claims every feature, so that nothing is skipped.
pub(super) struct Bare;

const EVERYTHING: [Feature; 11] = [
    Feature::Http2,
    Feature::Raw,
    Feature::Clock,
    Feature::Drain,
    Feature::StoreFaults,
    Feature::Panics,
    Feature::Gate,
    Feature::Grpc,
    Feature::Decode,
    Feature::Regex,
    Feature::Webhook,
];

impl Surface for Bare {
    fn name(&self) -> &str {
        "bare"
    }

    fn can(&self) -> &[Feature] {
        &EVERYTHING
    }

    /// Without a layer many cases time out, and are expected to fail.
    fn patience(&self) -> Duration {
        Duration::from_secs(2)
    }

    async fn start(&self, _: &Settings, origin: Origin) -> Result<Running, StartError> {
        serve(Gate::new(origin)).await
    }
}

/// A planted defect of the small layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Defect {
    /// Of several key lines it takes the first.
    TakesTheFirstLine,
    /// It runs a request whose key is malformed.
    IgnoresBadKeys,
    /// It treats the bare and the quoted spelling as different keys.
    KeepsQuotes,
    /// It replays to any request with a known key.
    ForgetsFingerprints,
    /// It lets a duplicate of a running request run.
    RunsDuplicates,
    /// It stops an execution whose client hangs up.
    StopsOnHangUp,
    /// It does not mark replays.
    MarksNothing,
    /// It replays the body alone.
    ForgetsHeaders,
    /// It shares keys between callers.
    SharesKeys,
    /// It covers GET.
    CoversGet,
}

/// The small layer.
pub(super) struct Naive(pub(super) Option<Defect>);

impl Surface for Naive {
    fn name(&self) -> &str {
        "naive"
    }

    fn can(&self) -> &[Feature] {
        &[Feature::Http2, Feature::Raw]
    }

    /// With a defect some cases time out, and are expected to fail.
    fn patience(&self) -> Duration {
        Duration::from_secs(if self.0.is_some() { 2 } else { 30 })
    }

    async fn start(&self, _: &Settings, origin: Origin) -> Result<Running, StartError> {
        serve(Layered { origin, defect: self.0, records: Arc::default() }).await
    }
}

type Answer = Response<Full<Bytes>>;

#[derive(Clone)]
struct Layered {
    origin: Origin,
    defect: Option<Defect>,
    records: Arc<Mutex<HashMap<String, Record>>>,
}

#[derive(Clone)]
struct Record {
    fingerprint: (String, Bytes),
    answer: Option<(StatusCode, HeaderMap, Bytes)>,
}

impl Layered {
    fn has(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    fn key(&self, request: &http::request::Parts) -> Result<Option<String>, ()> {
        let covered = [Method::POST, Method::PUT, Method::PATCH].contains(&request.method);
        let wrongly_covered = self.has(Defect::CoversGet) && request.method == Method::GET;
        if !covered && !wrongly_covered {
            return Ok(None);
        }
        let lines = request.headers.get_all("idempotency-key").iter().map(|line| line.as_bytes());
        let lines_max = if self.has(Defect::TakesTheFirstLine) { 1 } else { usize::MAX };
        let lines: Vec<&[u8]> = lines.take(lines_max).collect();
        if let (true, [line]) = (self.has(Defect::KeepsQuotes), &lines[..]) {
            return Ok(Some(String::from_utf8_lossy(line).into_owned()));
        }
        let key = KeyRules::new().parse(lines).map(|key| key.map(|key| key.as_str().to_owned()));
        if self.has(Defect::IgnoresBadKeys) { Ok(key.unwrap_or_default()) } else { key.map_err(drop) }
    }

    async fn answer(self, request: Request<hyper::body::Incoming>) -> Answer {
        let (head, body) = request.into_parts();
        let key = match self.key(&head) {
            Ok(key) => key,
            Err(()) => return problem(400, "key-invalid"),
        };
        let Ok(body) = body.collect().await else {
            return problem(400, "body-incomplete");
        };
        let body = body.to_bytes();
        let Some(key) = key else {
            return whole(self.execute(head, body).await);
        };
        let caller = head.headers.get("authorization").filter(|_| !self.has(Defect::SharesKeys)).cloned();
        let id = format!("{caller:?} {} {} {key}", head.method, head.uri.path());
        let fingerprint = (head.uri.query().unwrap_or_default().to_owned(), body.clone());
        if let Some(known) = self.claim(&id, &fingerprint) {
            return self.known(known, &fingerprint);
        }
        let run = {
            let layered = self.clone();
            async move {
                let answer = layered.execute(head, body).await;
                layered.records.lock().insert(id, Record { fingerprint, answer: Some(answer.clone()) });
                answer
            }
        };
        if self.has(Defect::StopsOnHangUp) {
            return whole(run.await);
        }
        match tokio::spawn(run).await {
            Ok(answer) => whole(answer),
            Err(_) => problem(500, "uncertain"),
        }
    }

    /// The record under `id`; none when it is claimed now.
    fn claim(&self, id: &str, fingerprint: &(String, Bytes)) -> Option<Record> {
        let mut records = self.records.lock();
        let runs_again = self.has(Defect::RunsDuplicates);
        let known = records.get(id).filter(|record| record.answer.is_some() || !runs_again).cloned();
        if known.is_none() {
            records.insert(id.to_owned(), Record { fingerprint: fingerprint.clone(), answer: None });
        }
        known
    }

    fn known(&self, record: Record, fingerprint: &(String, Bytes)) -> Answer {
        if record.fingerprint != *fingerprint && !self.has(Defect::ForgetsFingerprints) {
            return problem(422, "key-reused");
        }
        let Some((status, mut headers, body)) = record.answer else {
            let mut response = problem(409, "in-progress");
            response.headers_mut().insert("retry-after", http::HeaderValue::from_static("1"));
            return response;
        };
        if self.has(Defect::ForgetsHeaders) {
            headers.clear();
        }
        if !self.has(Defect::MarksNothing) {
            headers.insert("x-idempotent-replayed", http::HeaderValue::from_static("true"));
        }
        whole((status, headers, body))
    }

    async fn execute(&self, head: http::request::Parts, body: Bytes) -> (StatusCode, HeaderMap, Bytes) {
        let request = Request::from_parts(head, Full::new(body));
        let Ok(response) = self.origin.clone().call(request).await;
        let (head, body) = response.into_parts();
        (head.status, head.headers, body.collect().await.map(|body| body.to_bytes()).unwrap_or_default())
    }
}

fn whole((status, headers, body): (StatusCode, HeaderMap, Bytes)) -> Answer {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

fn problem(status: u16, code: &str) -> Answer {
    let document = serde_json::json!({ "type": format!("https://example.com/{code}"), "status": status });
    let mut headers = HeaderMap::new();
    headers.insert("content-type", http::HeaderValue::from_static("application/problem+json"));
    let status = StatusCode::from_u16(status).expect("a status of our own");
    whole((status, headers, document.to_string().into()))
}

impl Service<Request<hyper::body::Incoming>> for Layered {
    type Response = Answer;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Answer, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<hyper::body::Incoming>) -> Self::Future {
        let layered = self.clone();
        Box::pin(async move { Ok(layered.answer(request).await) })
    }
}
