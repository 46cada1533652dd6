//! A local stand-in for AWS Lambda, on a free port: the runtime API, and a process to run a function in.
//!
//! `lambda_http::run` takes its endpoint only from the environment, and changes the environment for each event. So a
//! function runs in its own process, as in Lambda: this test binary again, with the same test, which calls
//! [`is_function`] to find out which process it is in. This file is independent of the function's code.

use std::collections::HashMap;
use std::convert::Infallible;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// The variable with the endpoint of the runtime API.
const ENDPOINT: &str = "AWS_LAMBDA_RUNTIME_API";

const INVOCATIONS: &str = "/2018-06-01/runtime/invocation/";

/// The timeout of a function for one event. It is not enforced here; functions may read it.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The runtime API of one function: it queues events and receives results.
pub(crate) struct LambdaApi {
    endpoint: String,
    events: mpsc::UnboundedSender<(String, Value)>,
    pending: Pending,
    server: JoinHandle<()>,
}

/// The result of a function for one event.
#[derive(Debug)]
pub(crate) enum FunctionResult {
    /// It returned this.
    Returned(Value),
    /// It failed, with this report.
    Failed(Value),
}

/// An event that is queued or being processed.
pub(crate) struct Invocation(oneshot::Receiver<FunctionResult>);

/// A process that handles the events of one [`LambdaApi`]. Dropping it is `kill -9`.
pub(crate) struct Function(Child);

type Pending = Arc<Mutex<HashMap<String, oneshot::Sender<FunctionResult>>>>;

impl LambdaApi {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = listener.local_addr().unwrap().to_string();
        let (events, queue) = mpsc::unbounded_channel();
        let pending = Pending::default();
        let state =
            Arc::new(ApiState { queue: tokio::sync::Mutex::new(queue), pending: Arc::clone(&pending) });
        let server = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(Arc::clone(&state), stream));
            }
        });
        Self { endpoint, events, pending, server }
    }

    /// Runs the test of this name, with its full path, as the function.
    ///
    /// It should call `lambda_http::run`, which does not return. `variables` are added to its environment.
    pub(crate) fn function(&self, test: &str, variables: &[(&str, &str)]) -> Function {
        let child = Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--nocapture"])
            .env(ENDPOINT, &self.endpoint)
            .env("AWS_LAMBDA_FUNCTION_NAME", "order")
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128")
            .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
            .env("RUST_BACKTRACE", "0")
            .envs(variables.iter().copied())
            .stdout(Stdio::null())
            .spawn();
        Function(child.unwrap())
    }

    /// Queues an event, such as one made by [`http_event`].
    pub(crate) fn queue(&self, event: Value) -> Invocation {
        let (answer, answered) = oneshot::channel();
        let id = hapax::Key::random().as_str().to_owned();
        self.pending.lock().unwrap().insert(id.clone(), answer);
        self.events.send((id, event)).unwrap();
        Invocation(answered)
    }
}

impl Drop for LambdaApi {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Invocation {
    /// The result of the function, which it sends before the runtime asks for the next event.
    pub(crate) async fn answer(self) -> FunctionResult {
        let limit = tokio::time::timeout(TIMEOUT, self.0);
        limit.await.expect("the function responds in time").expect("the API outlives its events")
    }

    /// The response of the function, as API Gateway reads it.
    ///
    /// Of a repeated header only the first line arrives, because `lambda_http` writes no other; cookies all do.
    pub(crate) async fn response(self) -> Response<Bytes> {
        match self.answer().await {
            FunctionResult::Returned(returned) => http_response(&returned),
            FunctionResult::Failed(report) => panic!("the function failed: {report}"),
        }
    }
}

impl Function {
    /// Kills it without a shutdown, as Lambda may do any time between two events.
    pub(crate) fn kill(&mut self) {
        // Neither call can leave it running: it is a child process that was not yet waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Whether this process is a function.
pub(crate) fn is_function() -> bool {
    std::env::var_os(ENDPOINT).is_some()
}

/// One request as API Gateway's HTTP APIs (payload 2.0) pass it to a function.
pub(crate) fn http_event(request: &Request<Bytes>) -> Value {
    // Several lines of a name are joined by commas, and the names are in lower case.
    let mut headers = serde_json::Map::new();
    for name in request.headers().keys() {
        let lines: Vec<&str> =
            request.headers().get_all(name).iter().map(|line| line.to_str().unwrap()).collect();
        headers.insert(name.to_string(), lines.join(",").into());
    }
    let (method, path) = (request.method().as_str(), request.uri().path());
    json!({
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": request.uri().query().unwrap_or_default(),
        "headers": headers,
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "api-id",
            "domainName": "api-id.execute-api.eu-central-1.amazonaws.com",
            "domainPrefix": "api-id",
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "192.0.2.1",
                "userAgent": "test",
            },
            "requestId": "JKJaXmPLvHcESHA=",
            "routeKey": "$default",
            "stage": "$default",
            "time": "10/Mar/2020:05:16:23 +0000",
            "timeEpoch": 1_583_817_383_220_u64,
        },
        "body": BASE64_STANDARD.encode(request.body()),
        "isBase64Encoded": true,
    })
}

fn http_response(returned: &Value) -> Response<Bytes> {
    let status = returned["statusCode"].as_u64().and_then(|status| u16::try_from(status).ok()).unwrap();
    let mut response = Response::builder().status(status);
    for (name, line) in returned["headers"].as_object().into_iter().flatten() {
        response = response.header(name, line.as_str().unwrap());
    }
    for cookie in returned["cookies"].as_array().into_iter().flatten() {
        response = response.header(http::header::SET_COOKIE, cookie.as_str().unwrap());
    }
    let body = returned["body"].as_str().unwrap_or_default();
    let body = match returned["isBase64Encoded"].as_bool() {
        Some(true) => BASE64_STANDARD.decode(body).unwrap(),
        _ => body.as_bytes().to_vec(),
    };
    response.body(body.into()).unwrap()
}

/// The state shared by the connections.
struct ApiState {
    queue: tokio::sync::Mutex<mpsc::UnboundedReceiver<(String, Value)>>,
    pending: Pending,
}

async fn serve(state: Arc<ApiState>, stream: TcpStream) {
    let service = service_fn(|request| async {
        let response = match (request.method(), request.uri().path().strip_prefix(INVOCATIONS)) {
            (&Method::GET, Some("next")) => state.next().await,
            (&Method::POST, Some(_)) => state.answered(request).await,
            _ => plain(StatusCode::NOT_FOUND),
        };
        Ok::<_, Infallible>(response)
    });
    // A function that is killed resets its connection, which is not an error of the API.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

impl ApiState {
    /// Waits for an event without a timeout, like the real API.
    async fn next(&self) -> Response<Full<Bytes>> {
        let Some((id, event)) = self.queue.lock().await.recv().await else {
            return plain(StatusCode::GONE);
        };
        let deadline = (SystemTime::now() + TIMEOUT).duration_since(SystemTime::UNIX_EPOCH).unwrap();
        Response::builder()
            .header("content-type", "application/json")
            .header("lambda-runtime-aws-request-id", id)
            .header("lambda-runtime-deadline-ms", deadline.as_millis().to_string())
            .header(
                "lambda-runtime-invoked-function-arn",
                "arn:aws:lambda:eu-central-1:123456789012:function:order",
            )
            .header(
                "lambda-runtime-trace-id",
                "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Parent=9a9197af755a6419;Sampled=0",
            )
            .body(event.to_string().into())
            .unwrap()
    }

    async fn answered(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (parts, body) = request.into_parts();
        let Ok(body) = body.collect().await else {
            return plain(StatusCode::BAD_REQUEST);
        };
        let report: Value = serde_json::from_slice(&body.to_bytes()).expect("a function responds in JSON");
        let (id, answer) =
            match parts.uri.path().strip_prefix(INVOCATIONS).and_then(|rest| rest.split_once('/')) {
                Some((id, "response")) => (id, FunctionResult::Returned(report)),
                Some((id, "error")) => (id, FunctionResult::Failed(report)),
                _ => return plain(StatusCode::NOT_FOUND),
            };
        let Some(waiting) = self.pending.lock().unwrap().remove(id) else {
            return plain(StatusCode::BAD_REQUEST);
        };
        // The test may have stopped waiting; the result is accepted all the same.
        let _ = waiting.send(answer);
        plain(StatusCode::ACCEPTED)
    }
}

fn plain(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_function_responds_through_the_runtime_api() {
    if is_function() {
        return echo().await;
    }
    let api = LambdaApi::start().await;
    let test = "http_surfaces::lambda_api::a_function_responds_through_the_runtime_api";
    let _function = api.function(test, &[]);
    let request = |path: &str, body: &'static [u8]| {
        let request = Request::post(path).header("x-twice", "a").header("x-twice", "b");
        request.body(Bytes::from_static(body)).unwrap()
    };

    let first = api.queue(http_event(&request("/echo?q=1", b"\xff\x00")));
    let second = api.queue(http_event(&request("/panic", b"")));
    let third = api.queue(http_event(&request("/nowhere", b"")));

    let echoed = first.response().await;
    assert_eq!(echoed.status(), 201);
    assert_eq!(echoed.headers()["x-uri"], "/echo?q=1");
    assert_eq!(echoed.headers()["x-twice"], "a,b");
    let cookies: Vec<_> = echoed.headers().get_all("set-cookie").iter().collect();
    assert_eq!(cookies, ["a=1", "b=2"]);
    assert_eq!(echoed.body(), &b"\xff\x00"[..]);
    assert!(
        matches!(second.answer().await, FunctionResult::Failed(report) if report["errorType"].is_string())
    );
    assert_eq!(third.response().await.status(), 404);
}

/// The function: echoes its request.
async fn echo() {
    use axum::routing::post;

    async fn answer(request: axum::extract::Request) -> impl axum::response::IntoResponse {
        let (parts, body) = request.into_parts();
        let uri = parts.uri.path_and_query().unwrap().to_string();
        let twice = parts.headers["x-twice"].to_str().unwrap().to_owned();
        let headers = axum::response::AppendHeaders([
            ("x-uri", uri),
            ("x-twice", twice),
            ("set-cookie", "a=1".to_owned()),
            ("set-cookie", "b=2".to_owned()),
            ("content-type", "application/octet-stream".to_owned()),
        ]);
        (StatusCode::CREATED, headers, body)
    }
    async fn panic() -> StatusCode {
        panic!("a planned panic")
    }

    let router = axum::Router::new().route("/echo", post(answer)).route("/panic", post(panic));
    lambda_http::run(router).await.unwrap();
}
