//! One HTTP request on a connection of its own, with an end to everything.

use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::super::Token;
use super::super::auth::OPERATOR;
use crate::failure::{Code, Failure};

/// Longer than the listener itself takes for an answer.
const TIME_MAX: Duration = Duration::from_secs(60);

/// The largest answer: a page of records, or one payload as large as a store takes, in digits.
const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The port of plain HTTP.
const PORT_DEFAULT: u16 = 80;

/// What was answered.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
}

pub(super) async fn send(
    base: &Uri,
    token: &Token,
    method: Method,
    path: &str,
    body: Option<Vec<u8>>,
) -> Result<Reply, Failure> {
    let request = request(base, token, method, path, body).map_err(|error| {
        Failure::new(Code::InputInvalid, "the request to the sidecar cannot be sent").because(error)
    })?;
    match tokio::time::timeout(TIME_MAX, exchange(base, request)).await {
        Ok(reply) => reply.map_err(|error| unreachable(base).because(error)),
        Err(_) => Err(unreachable(base).because("it did not answer in time")),
    }
}

fn request(
    base: &Uri,
    token: &Token,
    method: Method,
    path: &str,
    body: Option<Vec<u8>>,
) -> Result<Request<Full<Bytes>>, http::Error> {
    let mut bearer = HeaderValue::try_from(format!("Bearer {}", token.reveal()))?;
    bearer.set_sensitive(true);
    let authority = base.authority().map_or("", http::uri::Authority::as_str);
    let mut request =
        Request::builder().method(method).uri(path).header(HOST, authority).header(AUTHORIZATION, bearer);
    if let Some(name) = operator() {
        request = request.header(OPERATOR, name);
    }
    if body.is_some() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    request.body(Full::from(body.unwrap_or_default()))
}

/// Who runs this, for the audit log.
fn operator() -> Option<HeaderValue> {
    let name = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).ok()?;
    HeaderValue::try_from(name).ok()
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

async fn exchange(base: &Uri, request: Request<Full<Bytes>>) -> Result<Reply, BoxError> {
    let host = base.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let stream = TcpStream::connect((host, base.port_u16().unwrap_or(PORT_DEFAULT))).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let answered = async {
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await?.to_bytes();
        Ok::<_, BoxError>(Reply { status, body })
    };
    let mut connection = std::pin::pin!(connection);
    let mut answered = std::pin::pin!(answered);
    tokio::select! {
        reply = answered.as_mut() => reply,
        ended = connection.as_mut() => {
            ended?;
            answered.await
        }
    }
}

fn unreachable(base: &Uri) -> Failure {
    let authority = base.authority().map_or("", http::uri::Authority::as_str);
    Failure::new(Code::AdminUnavailable, format!("no sidecar answers at {authority}")).hint(
        "check the URL and that `hapax serve` runs there; after a change, look at the record before repeating it",
    )
}
