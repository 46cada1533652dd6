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

/// Which HTTP is spoken.
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

/// What came back.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, Bytes)>,
    pub(super) body: Bytes,
    pub(super) trailers: Vec<(String, Bytes)>,
    /// `100 Continue` came before it.
    pub(super) continued: bool,
    /// The body broke off.
    pub(super) cut: bool,
}

impl Answer {
    /// The lines of a header field, in order.
    pub(super) fn lines<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Bytes> {
        lines(&self.headers, name)
    }
}

/// The values of all lines called `name`, in order.
pub(super) fn lines<'a>(fields: &'a [(String, Bytes)], name: &'a str) -> impl Iterator<Item = &'a Bytes> {
    fields.iter().filter(move |(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) struct Unanswered(String);

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Unanswered {
    fn hung_up() -> Self {
        Self("the client hung up, as the case says".into())
    }

    /// What was being done when it failed, and how.
    pub(super) fn because(doing: &str, error: impl fmt::Display) -> Self {
        Self(format!("{doing}: {error}"))
    }
}

/// Sends one request on a connection of its own and reads the whole answer. Dropping the future closes the
/// connection.
pub(super) async fn exchange(addr: SocketAddr, version: Version, send: &Send) -> Result<Answer, Unanswered> {
    exchange_unless(pending(), addr, version, send).await
}

/// The same, but when `leave` ends first, the client hangs up: it closes its side and waits until the server has
/// noticed and closed the other one.
pub(super) async fn exchange_unless(
    leave: impl Future<Output = ()>,
    addr: SocketAddr,
    version: Version,
    send: &Send,
) -> Result<Answer, Unanswered> {
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
