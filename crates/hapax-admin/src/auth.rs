//! Authentication: the Host check, the token, the console's cookie and the check against forged requests.

mod cookie;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::{HeaderMap, Method};

pub(crate) use self::cookie::Cookies;
use super::listener::Shared;
use crate::console;
use crate::failure::{Code, Failure};

/// The most characters of an operator's name.
pub(crate) const NAME_CHARS_MAX: usize = 64;

/// The header field with the name of the operator on whose behalf a program acts.
pub const OPERATOR_HEADER: &str = "x-hapax-operator";

/// The network address of the client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// The authenticated operator. The name is self-declared: all operators share one token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Actor {
    pub(crate) name: String,
    pub(crate) via: Via,
    pub(crate) address: String,
}

/// How the operator was authenticated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Via {
    Api,
    Console,
}

impl Via {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Console => "console",
        }
    }
}

/// Refuses requests for unknown host names.
pub(crate) async fn check_host(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    if shared.hosts.accepts(request.headers()) {
        return next.run(request).await;
    }
    Failure::new(Code::HostUnknown, "the host name is unknown")
        .hint("use localhost or an address, or list the name under admin.hosts")
        .into_response()
}

/// Refuses API requests without the token.
pub(crate) async fn require_token(
    State(shared): State<Arc<Shared>>,
    mut request: Request,
    next: Next,
) -> Response {
    match authenticate(&shared, &request) {
        Ok(actor) => {
            request.extensions_mut().insert(actor);
            next.run(request).await
        }
        Err(failure) => failure.into_response(),
    }
}

/// Redirects console requests without a login to the login page.
pub(crate) async fn require_login(
    State(shared): State<Arc<Shared>>,
    mut request: Request,
    next: Next,
) -> Response {
    match authenticate(&shared, &request) {
        Ok(actor) => {
            request.extensions_mut().insert(actor);
            console::as_page(next.run(request).await)
        }
        Err(failure) if failure.code() == Code::TokenInvalid => {
            let requested = match (request.method(), request.uri().path_and_query()) {
                (&Method::GET, Some(requested)) if requested.as_str() != "/" => requested.as_str(),
                _ => return Redirect::to("/login").into_response(),
            };
            let next = crate::query::query_value(requested);
            Redirect::to(&format!("/login?next={next}")).into_response()
        }
        Err(failure) => console::as_page(failure.into_response()),
    }
}

fn authenticate(shared: &Shared, request: &Request) -> Result<Actor, Failure> {
    let headers = request.headers();
    let address =
        request.extensions().get::<Peer>().map_or_else(|| "-".to_owned(), |peer| peer.0.ip().to_string());
    if let Some(given) = bearer(headers) {
        if !shared.token.is(given) && !shared.local_token.is(given) {
            tracing::warn!(from = %address, "a request to the admin listener had a wrong token");
            return Err(refused("the token is wrong"));
        }
        let name = headers.get(OPERATOR_HEADER).map(|name| String::from_utf8_lossy(name.as_bytes()));
        return Ok(Actor { name: sanitized_name(&name.unwrap_or_default()), via: Via::Api, address });
    }
    let Some(name) = shared.cookies.open(headers) else {
        return Err(refused("the admin listener requires its token"));
    };
    if !request.method().is_safe() && !is_same_origin(headers) {
        return Err(forged_request());
    }
    Ok(Actor { name, via: Via::Console, address })
}

/// The token of an `Authorization` field.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// Whether a browser sent the request from a page of the console. Pages cannot set either field.
pub(crate) fn is_same_origin(headers: &HeaderMap) -> bool {
    if let Some(site) = headers.get("sec-fetch-site") {
        return site == "same-origin";
    }
    let (Some(origin), Some(host)) = (headers.get(ORIGIN), headers.get(HOST)) else { return false };
    let (origin, host) = (origin.as_bytes(), host.as_bytes());
    [&b"http://"[..], b"https://"].iter().any(|scheme| origin.strip_prefix(*scheme) == Some(host))
}

/// The refusal of a request from a page of another site.
pub(crate) fn forged_request() -> Failure {
    Failure::new(Code::RequestForged, "the request comes from a page of another site")
        .hint("use the pages of the console, or send the token in Authorization")
}

/// A self-declared name, limited to what the audit log accepts.
pub(crate) fn sanitized_name(name: &str) -> String {
    name.trim().chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect()
}

fn refused(what: &str) -> Failure {
    Failure::new(Code::TokenInvalid, what).hint("send it as Authorization: Bearer TOKEN")
}

#[cfg(test)]
mod tests;
