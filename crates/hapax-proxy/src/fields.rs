//! Header fields on their way: which stop here, and which are added.
//!
//! What a client says about the connection, or in our name, goes no further. It is taken off when a request comes in,
//! before ours is added: a client cannot name one of our fields in `Connection` and have it dropped.

mod id;

use std::net::IpAddr;

use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TE, TRANSFER_ENCODING, UPGRADE, VIA};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Version};

use super::head::is_other_protocol;

pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED: HeaderName = http::header::FORWARDED;
pub(super) const OUTCOME: HeaderName = HeaderName::from_static("idempotency-outcome");

/// Fields that a client has no business to send.
const NEVER_SAID: [&str; 5] = [
    "idempotency-outcome",
    "idempotency-recorded",
    "idempotency-protected",
    "idempotent-replayed",
    "x-idempotent-replayed",
];

/// Fields that an origin, or whoever else is asked, believes because they come from us.
const SAID_BY_US: [&str; 8] = [
    "idempotency-operation",
    "idempotency-attempt",
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-forwarded-host",
    "x-request-id",
    "x-original-method",
    "x-original-uri",
];

/// What is said about the client of one connection. Made once for it, and shared by its requests.
#[derive(Clone, Debug)]
pub(super) struct Client {
    address: HeaderValue,
    proto: HeaderValue,
    /// `for=…;proto=…`, where `Forwarded` is wanted.
    forwarded: Option<HeaderValue>,
    /// Whether what the client says about others is believed.
    is_trusted: bool,
}

/// Whether a client's connection is encrypted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Security {
    Plain,
    Tls,
}

impl Client {
    pub(super) fn new(peer: IpAddr, security: Security, forwarded: bool, is_trusted: bool) -> Self {
        let proto = match security {
            Security::Plain => "http",
            Security::Tls => "https",
        };
        let peer = peer.to_canonical();
        let text = |text: String| HeaderValue::try_from(text).expect("addresses are printable ASCII");
        let node = if peer.is_ipv6() { format!("\"[{peer}]\"") } else { peer.to_string() };
        Self {
            address: text(peer.to_string()),
            proto: HeaderValue::from_static(proto),
            forwarded: forwarded.then(|| text(format!("for={node};proto={proto}"))),
            is_trusted,
        }
    }

    /// Makes a request's fields ours: takes off what is not the client's to say, and says what is known of it. The
    /// request's id, which it carries from now on.
    pub(super) fn admit(&self, headers: &mut HeaderMap, version: Version) -> HeaderValue {
        drop_named_by_connection(headers);
        drop_ours(headers);
        let is_chain = self.is_trusted && headers.contains_key(&FORWARDED_FOR);
        if is_chain {
            extend(headers, FORWARDED_FOR, &self.address);
        } else {
            headers.insert(FORWARDED_FOR, self.address.clone());
        }
        if !(is_chain && headers.contains_key(&FORWARDED_PROTO)) {
            headers.insert(FORWARDED_PROTO, self.proto.clone());
        }
        if !(is_chain && headers.contains_key(&FORWARDED_HOST)) {
            match headers.get(HOST).cloned() {
                Some(host) => headers.insert(FORWARDED_HOST, host),
                None => headers.remove(&FORWARDED_HOST),
            };
        }
        match &self.forwarded {
            Some(forwarded) if self.is_trusted => extend(headers, FORWARDED, forwarded),
            Some(forwarded) => drop(headers.insert(FORWARDED, forwarded.clone())),
            None if self.is_trusted => {}
            None => drop(headers.remove(&FORWARDED)),
        }
        extend(headers, VIA, &HeaderValue::from_static(via(version)));
        match headers.get(&REQUEST_ID) {
            Some(id) if id::is_id(id) => id.clone(),
            _ => {
                let id = id::make();
                headers.insert(REQUEST_ID, id.clone());
                id
            }
        }
    }
}

const fn via(version: Version) -> &'static str {
    match version {
        Version::HTTP_2 => "2 hapax",
        Version::HTTP_10 => "1.0 hapax",
        _ => "1.1 hapax",
    }
}

/// Adds to a list, as one line.
fn extend(headers: &mut HeaderMap, name: HeaderName, last: &HeaderValue) {
    let lines: Vec<&[u8]> = headers.get_all(&name).iter().map(HeaderValue::as_bytes).collect();
    if lines.is_empty() {
        headers.insert(name, last.clone());
        return;
    }
    let mut list = lines.join(b", ".as_slice());
    list.extend_from_slice(b", ");
    list.extend_from_slice(last.as_bytes());
    if let Ok(list) = HeaderValue::from_bytes(&list) {
        headers.insert(name, list);
    }
}

/// Fields that `Connection` names are for this connection only. What the message cannot do without is not.
fn drop_named_by_connection(headers: &mut HeaderMap) {
    let Some(first) = headers.get(CONNECTION) else { return };
    // What nearly everybody sends names nothing.
    if matches!(first.as_bytes(), b"keep-alive" | b"close" | b"Keep-Alive" | b"Upgrade" | b"upgrade") {
        let mut lines = headers.get_all(CONNECTION).iter();
        if lines.nth(1).is_none() {
            return;
        }
    }
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(|line| line.as_bytes().split(|byte| *byte == b','))
        .filter_map(|token| HeaderName::from_bytes(token.trim_ascii()).ok())
        .filter(|name| ![HOST, UPGRADE, CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING, TE].contains(name))
        .collect();
    for name in named {
        headers.remove(name);
    }
}

/// What only we or an origin may say.
fn drop_ours(headers: &mut HeaderMap) {
    drop_those(headers, |name| NEVER_SAID.contains(&name) || is_posing(name));
}

/// Takes off the fields whose names are meant. There are few fields, and most are not: to look at each is quicker than to
/// look up every name.
fn drop_those(headers: &mut HeaderMap, is_meant: impl Fn(&str) -> bool) {
    while let Some(name) = headers.keys().find(|name| is_meant(name.as_str())).cloned() {
        headers.remove(name);
    }
}

/// Whether servers that do not tell `_` from `-` take this for a field that is ours.
fn is_posing(name: &str) -> bool {
    name.contains('_') && {
        let name = name.replace('_', "-");
        NEVER_SAID.iter().chain(&SAID_BY_US).any(|ours| *ours == name)
    }
}

/// Whether a request asks for another protocol than HTTP.
pub(super) fn is_upgrade(headers: &HeaderMap) -> bool {
    let has = |name: HeaderName, is_wanted: fn(&[u8]) -> bool| {
        let lines = headers.get_all(name).into_iter();
        lines
            .flat_map(|line| line.as_bytes().split(|byte| *byte == b','))
            .any(|token| is_wanted(token.trim_ascii()))
    };
    headers.contains_key(UPGRADE)
        && has(CONNECTION, |token| token.eq_ignore_ascii_case(b"upgrade"))
        && has(UPGRADE, is_other_protocol)
}

/// What becomes of a request's wish for another protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wish {
    Kept,
    Dropped,
}

/// Takes off what belongs to the client's connection, and its framing: the request gets its own on the next one.
pub(super) fn leave_connection(headers: &mut HeaderMap, version: Version, upgrade: Wish) {
    // An offer of trailers is made again in our name, for we pass them on. HTTP/2 has them for everybody.
    let takes_trailers = version == Version::HTTP_2 || headers.get_all(TE).iter().any(takes_trailers);
    let protocol = (upgrade == Wish::Kept).then(|| headers.get(UPGRADE).cloned()).flatten();
    drop_those(headers, |name| match name {
        "content-length" | "expect" | "http2-settings" | "proxy-authorization" | "te" => true,
        name => is_of_connection(name),
    });
    if takes_trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    if let Some(protocol) = protocol {
        headers.insert(UPGRADE, protocol);
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    }
}

/// Whether a request without a body says that it has none: always where its method has a meaning for one (RFC 9110,
/// section 8.6), for some servers refuse it otherwise, and else where its sender said so.
pub(super) fn says_empty(method: &Method, headers: &HeaderMap) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH) || headers.contains_key(CONTENT_LENGTH)
}

/// Takes off what belongs to the upstream's connection. The length of the body stays: it is the body's.
pub(super) fn leave_upstream(headers: &mut HeaderMap, upgrade: Wish) {
    drop_named_by_connection(headers);
    drop_those(headers, |name| match name {
        "proxy-authenticate" => true,
        "upgrade" => upgrade == Wish::Dropped,
        name => is_of_connection(name),
    });
    if upgrade == Wish::Kept {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    }
}

/// Whether everybody agrees where an upstream's answer ends: it is chunked and nothing else, or not encoded at all.
pub(super) fn is_framing_clear(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let Some(coding) = codings.next() else { return true };
    codings.next().is_none()
        && coding.as_bytes().eq_ignore_ascii_case(b"chunked")
        && !headers.contains_key(CONTENT_LENGTH)
}

/// Whether a field is about one connection and its framing, in both directions.
fn is_of_connection(name: &str) -> bool {
    matches!(name, "connection" | "keep-alive" | "proxy-connection" | "transfer-encoding" | "upgrade")
}

fn takes_trailers(te: &HeaderValue) -> bool {
    te.as_bytes()
        .split(|byte| *byte == b',')
        .any(|token| token.trim_ascii().eq_ignore_ascii_case(b"trailers"))
}

#[cfg(test)]
mod tests;
