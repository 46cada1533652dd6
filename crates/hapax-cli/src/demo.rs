//! The built-in orders API: a service on its own loopback port that is slow, fails or crashes on request.
//!
//! | request | response |
//! |---|---|
//! | `POST /orders` | creates an order |
//! | `GET /orders/{id}`, `GET /orders` | returns an order, or the number of orders |
//! | `POST /orders/slow` | creates an order in three seconds |
//! | `POST /orders/flaky` | fails with 503 every other time, and creates an order otherwise |
//! | `POST /orders/crash` | creates an order and closes the connection without a response |
//!
//! It ignores keys, which are handled by the sidecar in front of it.

use std::collections::VecDeque;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::config::{Config, Flags};
use crate::failure::{Code, Failure};

/// Long enough to send the same request again meanwhile.
const SLOW: Duration = Duration::from_secs(3);
/// The pause after a failed accept, which would otherwise be retried in a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How many orders are kept; the oldest are dropped.
const ORDERS_MAX: usize = 10_000;
/// The maximum size of an order.
const ORDER_BYTES_MAX: usize = 64 << 10;

/// The running API.
#[derive(Debug)]
pub(crate) struct Demo {
    /// Its URL.
    pub(crate) url: Uri,
}

impl Demo {
    /// The configuration with the demo as its upstream, also after a reload.
    pub(crate) fn as_upstream_of(&self, config: Config, flags: Flags) -> (Config, Flags) {
        let flags = flags.with("--demo", ("", "upstream"), Some(self.url.to_string()));
        (Config { upstream: vec![self.url.clone()], ..config }, flags)
    }
}

/// Starts the API, which runs until the process ends.
pub(crate) async fn start() -> Result<Demo, Failure> {
    let failed = |error: io::Error| Failure::new(Code::Failed, "the demo cannot listen").because(error);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let url = format!("http://{address}/").parse::<Uri>();
    let url = url.map_err(|error| Failure::new(Code::Failed, "the demo has no address").because(error))?;
    let orders = Arc::new(Mutex::new(Orders::default()));
    tokio::spawn(async move {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let orders = orders.clone();
            let service = service_fn(move |request| answer(orders.clone(), request));
            // Connection errors are part of the demo.
            tokio::spawn(
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
            );
        }
    });
    Ok(Demo { url })
}

/// Commands to try, in this order, each with what it shows.
pub(crate) fn tries(listen: &str) -> [(&'static str, String); 4] {
    // The name is random: the records of an earlier demo are still in the store.
    let name = hapax::Key::random();
    let name = name.as_str().rsplit('-').next().unwrap_or_default();
    let curl = |key: &str, rest: &str, paths: &[&str]| {
        let urls: Vec<String> = paths.iter().map(|path| format!("{listen}{path}")).collect();
        format!(
            "curl --no-progress-meter -i -w '\\n' {rest} -H 'Idempotency-Key: {key}-{name}' {}",
            urls.join(" ")
        )
    };
    let book = r#"--json '{"item":"book"}'"#;
    let pen = r#"--json '{"item":"pen"}'"#;
    [
        ("sent twice, executed once: the second response is replayed", curl("order", book, &["/orders"; 2])),
        ("the same key for another order: 422", curl("order", pen, &["/orders"])),
        (
            "sent again while the first one runs: 409",
            curl("slow", &format!("-Z --parallel-immediate {book}"), &["/orders/slow"; 2]),
        ),
        (
            "the service crashes before it responds: the record is uncertain, and the order is not created again",
            curl("crash", book, &["/orders/crash"; 2]),
        ),
    ]
}

#[derive(Default)]
struct Orders {
    created: u64,
    kept: VecDeque<(u64, Value)>,
    flaky_calls: u64,
}

impl Orders {
    fn create(&mut self, body: &[u8]) -> Value {
        self.created += 1;
        let item = serde_json::from_slice::<Value>(body).ok().and_then(|order| order.get("item").cloned());
        let order = json!({ "id": self.created, "item": item });
        if self.kept.len() == ORDERS_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back((self.created, order.clone()));
        order
    }

    fn find(&self, id: &str) -> Option<Value> {
        let id: u64 = id.parse().ok()?;
        self.kept.iter().find(|(known, _)| *known == id).map(|(_, order)| order.clone())
    }

    fn fails_now(&mut self) -> bool {
        self.flaky_calls += 1;
        self.flaky_calls % 2 == 1
    }
}

/// An error closes the connection without a response.
async fn answer(orders: Arc<Mutex<Orders>>, request: Request<Incoming>) -> io::Result<Response<Full<Bytes>>> {
    let (head, body) = request.into_parts();
    let body = match Limited::new(body, ORDER_BYTES_MAX).collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => return Ok(document(StatusCode::PAYLOAD_TOO_LARGE, &json!({ "error": "too large" }))),
    };
    let created = |order| Ok(document(StatusCode::CREATED, &order));
    match (&head.method, head.uri.path()) {
        (&Method::POST, "/orders") => created(orders.lock().create(&body)),
        (&Method::POST, "/orders/slow") => {
            tokio::time::sleep(SLOW).await;
            created(orders.lock().create(&body))
        }
        (&Method::POST, "/orders/flaky") => {
            let mut orders = orders.lock();
            if orders.fails_now() {
                return Ok(document(StatusCode::SERVICE_UNAVAILABLE, &json!({ "error": "try again" })));
            }
            created(orders.create(&body))
        }
        (&Method::POST, "/orders/crash") => {
            orders.lock().create(&body);
            Err(io::ErrorKind::ConnectionAborted.into())
        }
        (&Method::GET, "/orders") => {
            Ok(document(StatusCode::OK, &json!({ "created": orders.lock().created })))
        }
        (&Method::GET, path) => {
            Ok(match path.strip_prefix("/orders/").and_then(|id| orders.lock().find(id)) {
                Some(order) => document(StatusCode::OK, &order),
                None => document(StatusCode::NOT_FOUND, &json!({ "error": "no such order" })),
            })
        }
        _ => Ok(document(StatusCode::NOT_FOUND, &json!({ "error": "no such endpoint" }))),
    }
}

fn document(status: StatusCode, document: &Value) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(format!("{document}\n")));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
