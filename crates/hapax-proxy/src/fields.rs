//! Rewrites header fields: hop-by-hop fields are removed, and the proxy's own are added.
//!
//! What a client says about the connection or in the proxy's name is removed when a request comes in, before the proxy's
//! fields are added: a client cannot name one of them in `Connection` and have it dropped.

mod request_id;

use std::net::IpAddr;

use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TE, TRANSFER_ENCODING, UPGRADE, VIA};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Version};

use crate::head::is_other_protocol;
use crate::options::ListenerOptions;

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED: HeaderName = http::header::FORWARDED;

/// The fields that an upstream believes because the proxy sets them.
const SET_HERE: [&str; 4] = ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-request-id"];

/// Fields, in lower case, that clients must not send because of what a service or an upstream takes them for. A variant
/// with `_` for `-` is removed as well: some servers do not tell them apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReservedFields {
    /// Removed from every request.
    pub removed: &'static [&'static str],
    /// Set by the service. The service replaces the field itself, so only its variants are removed.
    pub set_by_service: &'static [&'static str],
}

/// What is forwarded about the client of a connection. Made once per connection.
#[derive(Clone, Debug)]
pub(crate) struct ClientInfo {
    address: HeaderValue,
    proto: HeaderValue,
    /// `for=…;proto=…`, where `Forwarded` is sent.
    forwarded: Option<HeaderValue>,
    /// Whether the client's own `Forwarded` fields are kept.
    is_trusted: bool,
    reserved: ReservedFields,
}

/// Whether a client's connection is encrypted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Security {
    Plain,
    Tls,
}

impl ClientInfo {
    pub(crate) fn new(
        peer: IpAddr,
        security: Security,
        options: &ListenerOptions,
        reserved: ReservedFields,
    ) -> Self {
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
            forwarded: options.forwarded.then(|| text(format!("for={node};proto={proto}"))),
            is_trusted: options.trust_forwarded,
            reserved,
        }
    }

    /// Removes the fields that are not the client's to send, and adds those about the client. Returns the request's id,
    /// which is in its fields from now on.
    pub(crate) fn rewrite_request(&self, headers: &mut HeaderMap, version: Version) -> HeaderValue {
        remove_connection_options(headers);
        self.remove_reserved(headers);
        let is_chain = self.is_trusted && headers.contains_key(&FORWARDED_FOR);
        if is_chain {
            append_to_list(headers, FORWARDED_FOR, &self.address);
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
            Some(forwarded) if self.is_trusted => append_to_list(headers, FORWARDED, forwarded),
            Some(forwarded) => drop(headers.insert(FORWARDED, forwarded.clone())),
            None if self.is_trusted => {}
            None => drop(headers.remove(&FORWARDED)),
        }
        append_to_list(headers, VIA, &HeaderValue::from_static(via(version)));
        match headers.get(&REQUEST_ID) {
            Some(id) if request_id::is_valid(id) => id.clone(),
            _ => {
                let id = request_id::generate();
                headers.insert(REQUEST_ID, id.clone());
                id
            }
        }
    }

    fn remove_reserved(&self, headers: &mut HeaderMap) {
        let reserved = self.reserved;
        remove_matching(headers, |name| {
            reserved.removed.contains(&name) || is_underscore_variant(name, reserved)
        });
    }
}

const fn via(version: Version) -> &'static str {
    match version {
        Version::HTTP_2 => "2 hapax",
        Version::HTTP_10 => "1.0 hapax",
        _ => "1.1 hapax",
    }
}

/// Appends to a list field, joined into one line.
fn append_to_list(headers: &mut HeaderMap, name: HeaderName, last: &HeaderValue) {
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

/// Removes the fields that `Connection` names, except those that the message needs.
fn remove_connection_options(headers: &mut HeaderMap) {
    let Some(first) = headers.get(CONNECTION) else { return };
    // The usual values name no field.
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

/// Removes fields by name. There are few fields and most are kept: a scan is quicker than a lookup of every name.
fn remove_matching(headers: &mut HeaderMap, is_removed: impl Fn(&str) -> bool) {
    while let Some(name) = headers.keys().find(|name| is_removed(name.as_str())).cloned() {
        headers.remove(name);
    }
}

/// Whether servers that treat `_` as `-` take this for a reserved field.
fn is_underscore_variant(name: &str, reserved: ReservedFields) -> bool {
    name.contains('_') && {
        let name = name.replace('_', "-");
        reserved.removed.iter().chain(reserved.set_by_service).chain(&SET_HERE).any(|field| *field == name)
    }
}

/// Whether a request asks for an upgrade to a protocol other than HTTP.
pub(crate) fn is_upgrade(headers: &HeaderMap) -> bool {
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

/// Whether the fields of an upgrade are forwarded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Upgrade {
    Keep,
    Remove,
}

/// Removes the hop-by-hop fields of the client's connection, and the framing: the request gets its own on the next one.
pub(crate) fn strip_request(headers: &mut HeaderMap, version: Version, upgrade: Upgrade) {
    // An offer of trailers is made again, for they are passed on. Over HTTP/2 it is implied.
    let takes_trailers = version == Version::HTTP_2 || headers.get_all(TE).iter().any(takes_trailers);
    let protocol = (upgrade == Upgrade::Keep).then(|| headers.get(UPGRADE).cloned()).flatten();
    remove_matching(headers, |name| match name {
        "content-length" | "expect" | "http2-settings" | "proxy-authorization" | "te" => true,
        name => is_hop_by_hop(name),
    });
    if takes_trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    if let Some(protocol) = protocol {
        headers.insert(UPGRADE, protocol);
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    }
}

/// Whether a request without a body gets `Content-Length: 0`: always where the method anticipates a body (RFC 9110, section
/// 8.6), for some servers refuse it otherwise, and else where the client sent it.
pub(crate) fn states_empty_body(method: &Method, headers: &HeaderMap) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH) || headers.contains_key(CONTENT_LENGTH)
}

/// Removes the hop-by-hop fields of the upstream's connection. `Content-Length` stays.
pub(crate) fn strip_response(headers: &mut HeaderMap, upgrade: Upgrade) {
    remove_connection_options(headers);
    remove_matching(headers, |name| match name {
        "proxy-authenticate" => true,
        "upgrade" => upgrade == Upgrade::Remove,
        name => is_hop_by_hop(name),
    });
    if upgrade == Upgrade::Keep {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    }
}

/// Whether all parsers agree where an upstream's response ends: it is chunked and nothing else, or not encoded at all.
pub(crate) fn is_framing_unambiguous(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let Some(coding) = codings.next() else { return true };
    codings.next().is_none()
        && coding.as_bytes().eq_ignore_ascii_case(b"chunked")
        && !headers.contains_key(CONTENT_LENGTH)
}

/// Whether a field belongs to one connection and its framing, in both directions.
fn is_hop_by_hop(name: &str) -> bool {
    matches!(name, "connection" | "keep-alive" | "proxy-connection" | "transfer-encoding" | "upgrade")
}

fn takes_trailers(te: &HeaderValue) -> bool {
    te.as_bytes()
        .split(|byte| *byte == b',')
        .any(|token| token.trim_ascii().eq_ignore_ascii_case(b"trailers"))
}

#[cfg(test)]
mod tests;
