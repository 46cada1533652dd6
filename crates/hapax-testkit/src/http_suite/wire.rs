//! Requests and answers on a real socket, one connection for each request.
//!
//! It owns the bytes. It knows nothing of cases beyond the request that it is given.

mod http1;
mod http2;
mod sign;

use std::fmt;
use std::future::{Future, pending};
use std::net::SocketAddr;
use std::time::SystemTime;

use bytes::Bytes;

use super::case::Send;

/// A version of HTTP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Version {
    Http1,
    Http2,
}

impl Version {
    pub(super) const ALL: [Self; 2] = [Self::Http1, Self::Http2];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
        }
    }
}

/// A response as it was read.
#[derive(Clone, Debug, Default)]
pub(super) struct WireResponse {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, Bytes)>,
    pub(super) body: Bytes,
    pub(super) trailers: Vec<(String, Bytes)>,
    /// `100 Continue` came before it.
    pub(super) continued: bool,
    /// The body was cut off.
    pub(super) cut: bool,
}

impl WireResponse {
    /// The lines of a header field, in order.
    pub(super) fn lines<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Bytes> {
        lines(&self.headers, name)
    }
}

/// The values of all lines called `name`, in order.
pub(super) fn lines<'a>(fields: &'a [(String, Bytes)], name: &'a str) -> impl Iterator<Item = &'a Bytes> {
    fields.iter().filter(move |(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct ExchangeError(String);

impl ExchangeError {
    fn hung_up() -> Self {
        Self("the case lets the client hang up".into())
    }

    /// The action that failed, and its error.
    pub(super) fn because(doing: &str, error: impl fmt::Display) -> Self {
        Self(format!("{doing}: {error}"))
    }
}

/// Sends one request on its own connection and reads the whole response. Dropping the future closes the connection.
pub(super) async fn exchange(
    addr: SocketAddr,
    version: Version,
    send: &Send,
) -> Result<WireResponse, ExchangeError> {
    exchange_unless(pending(), addr, version, send).await
}

/// The same, but when `leave` ends first, the client hangs up: it closes its side and waits until the server has
/// closed the other one.
pub(super) async fn exchange_unless(
    leave: impl Future<Output = ()>,
    addr: SocketAddr,
    version: Version,
    send: &Send,
) -> Result<WireResponse, ExchangeError> {
    let mut send = send.clone();
    for (_, value) in &mut send.headers {
        *value = value.replace("{now}", &httpdate::fmt_http_date(SystemTime::now()));
    }
    if let Some(sign) = send.sign.take() {
        let content = send.content().unwrap_or_default();
        send.headers.extend(sign::lines(&sign, &content)?);
    }
    match version {
        Version::Http1 => http1::exchange(leave, addr, &send).await,
        Version::Http2 => http2::exchange(leave, addr, &send).await,
    }
}
