//! The head of a request: whether it is covered, and whether its head alone refuses it.

use std::sync::Arc;

use http::header::{CONNECTION, UPGRADE};
use http::{HeaderName, Request};

use super::responder::Responder;
use super::{Entry, Exchange, Passing};
use crate::http::canonical::header::Fields;
use crate::http::layer::{LayerState, RouteMatch, path_of};
use crate::http::policy::KeyMode;
use crate::http::problem::{Code, Problem};
use crate::http::rules::Rules;

pub(super) fn enter<B>(shared: &Arc<LayerState>, request: &Request<B>) -> Entry {
    let (method, fields) = (request.method(), Fields::of(request.headers()));
    let responder = |route| Responder::new(shared.clone(), route, request.extensions());
    let refused = |route, problem| Entry::Answer(responder(route).refuse(&problem));
    match shared.find(method, || path_of(request.uri(), request.extensions())) {
        RouteMatch::None => Entry::Pass(Passing::UNTOUCHED),
        // A signature is required of all senders: nothing that a sender writes into the head waives it (P-03).
        RouteMatch::Covered(route) if shared.route(route).policy.is_webhook() => {
            Entry::Covered(Exchange { responder: responder(route), key: None })
        }
        _ if is_upgrade(fields) => Entry::Pass(Passing::UNTOUCHED),
        RouteMatch::Uncovered(route) => {
            let source = &shared.route(route).policy.key_source;
            if method.is_safe() || source.header().is_none_or(|name| fields.first(name).is_none()) {
                return Entry::Pass(Passing::UNTOUCHED);
            }
            refused(route, Problem::of(Code::NotRepeatable, "this method takes no key here"))
        }
        RouteMatch::Covered(route) => {
            let policy = &shared.route(route).policy;
            if shared.route(route).is_unnamed_grpc_call(fields) {
                return Entry::Pass(Passing::UNTOUCHED);
            }
            if let Some(problem) = named_by_connection(fields, policy) {
                return refused(route, problem);
            }
            match policy.key_source.in_head(fields, request.uri().query()) {
                Err(fault) => refused(route, Problem::of(Code::KeyInvalid, fault.detail())),
                Ok(None) if !policy.key_source.may_be_in_body(fields) => match policy.key {
                    KeyMode::Required => refused(route, policy.key_missing()),
                    KeyMode::Optional | KeyMode::Off => {
                        Entry::Pass(Passing::without_key(responder(route), request.extensions()))
                    }
                },
                Ok(key) => Entry::Covered(Exchange { responder: responder(route), key }),
            }
        }
    }
}

/// The refusal of a request whose `Connection` names the field of its key or of its principal (K-10). Such a field is for
/// one connection only: a proxy takes it off, and what is left would run without protection, or as another caller's.
fn named_by_connection(fields: Fields<'_>, policy: &Rules) -> Option<Problem> {
    if !fields.may_have(&CONNECTION) {
        return None;
    }
    tokens(fields, &CONNECTION).find_map(|name| {
        if policy.key_source.reads(name) {
            let detail = "`Connection` names the field of the key, which is then for one connection only";
            Some(Problem::of(Code::KeyInvalid, detail).with_same_key())
        } else if policy.scope.reads(name) {
            let detail = "`Connection` names the field that says who the caller is, which is then for one connection only";
            Some(Problem::of(Code::PrincipalMissing, detail))
        } else {
            None
        }
    })
}

/// Whether the client asks for another protocol than HTTP on this connection. An offer to go on in HTTP/2 or TLS is
/// none: servers decline it, and a request that came with it would lose its protection.
fn is_upgrade(fields: Fields<'_>) -> bool {
    let begins = |protocol: &[u8], start: &[u8]| {
        protocol.get(..start.len()).is_some_and(|found| found.eq_ignore_ascii_case(start))
    };
    let is_http = |protocol: &[u8]| {
        protocol.eq_ignore_ascii_case(b"h2c") || begins(protocol, b"tls/") || begins(protocol, b"http/")
    };
    fields.may_have(&UPGRADE)
        && tokens(fields, &CONNECTION).any(|token| token.eq_ignore_ascii_case(b"upgrade"))
        && tokens(fields, &UPGRADE).any(|protocol| !protocol.is_empty() && !is_http(protocol))
}

/// The items of a field that is a list. Bytes that are no text in one of them hide no other.
fn tokens<'a>(fields: Fields<'a>, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> {
    fields.lines(name).flat_map(|line| line.as_bytes().split(|byte| *byte == b',')).map(<[u8]>::trim_ascii)
}
