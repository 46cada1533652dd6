//! Who may come in: the Host check, the token, the console's cookie and the guard against forged requests.
//!
//! It decides who asks. It does not know what is asked for.

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

/// Longer names are no names; they would only fill the audit log.
pub(crate) const NAME_CHARS_MAX: usize = 64;

/// The field in which a program says for whom it acts.
pub const OPERATOR: &str = "x-hapax-operator";

/// Where the request came from on the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// Whoever showed the token. The name is what they call themselves: a token tells nobody apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Actor {
    pub(crate) name: String,
    pub(crate) via: Via,
    pub(crate) address: String,
}

/// How the token was shown.
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

/// Refuses requests under names that are not ours.
pub(crate) async fn own_host(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    if shared.hosts.admit(request.headers()) {
        return next.run(request).await;
    }
    Failure::new(Code::HostUnknown, "the admin listener is not known under this name")
        .hint("use localhost or an address, or list the name under admin.hosts")
        .into_response()
}

/// Lets nobody through to the API without the token.
pub(crate) async fn for_api(State(shared): State<Arc<Shared>>, mut request: Request, next: Next) -> Response {
    match identify(&shared, &request) {
        Ok(actor) => {
            request.extensions_mut().insert(actor);
            next.run(request).await
        }
        Err(failure) => failure.into_response(),
    }
}

/// Lets nobody through to the console who did not log in; shows them where.
pub(crate) async fn for_console(
    State(shared): State<Arc<Shared>>,
    mut request: Request,
    next: Next,
) -> Response {
    match identify(&shared, &request) {
        Ok(actor) => {
            request.extensions_mut().insert(actor);
            console::as_page(next.run(request).await)
        }
        Err(failure) if failure.code() == Code::TokenInvalid => {
            let wanted = match (request.method(), request.uri().path_and_query()) {
                (&Method::GET, Some(wanted)) if wanted.as_str() != "/" => wanted.as_str(),
                _ => return Redirect::to("/login").into_response(),
            };
            let next = crate::query::query_value(wanted);
            Redirect::to(&format!("/login?next={next}")).into_response()
        }
        Err(failure) => console::as_page(failure.into_response()),
    }
}

fn identify(shared: &Shared, request: &Request) -> Result<Actor, Failure> {
    let headers = request.headers();
    let address =
        request.extensions().get::<Peer>().map_or_else(|| "-".to_owned(), |peer| peer.0.ip().to_string());
    if let Some(given) = bearer(headers) {
        if !shared.token.is(given) && !shared.local_token.is(given) {
            tracing::warn!(from = %address, "somebody came to the admin listener with a wrong token");
            return Err(refused("this is not the token"));
        }
        let name = headers.get(OPERATOR).map(|name| String::from_utf8_lossy(name.as_bytes()));
        return Ok(Actor { name: fit_name(&name.unwrap_or_default()), via: Via::Api, address });
    }
    let Some(name) = shared.cookies.open(headers) else {
        return Err(refused("the admin listener needs its token"));
    };
    if !request.method().is_safe() && !is_own_page(headers) {
        return Err(forged());
    }
    Ok(Actor { name, via: Via::Console, address })
}

/// The token of an `Authorization` field.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// Whether a browser sent this from one of our own pages. Browsers let no page set either field.
pub(crate) fn is_own_page(headers: &HeaderMap) -> bool {
    if let Some(site) = headers.get("sec-fetch-site") {
        return site == "same-origin";
    }
    let (Some(origin), Some(host)) = (headers.get(ORIGIN), headers.get(HOST)) else { return false };
    let (origin, host) = (origin.as_bytes(), host.as_bytes());
    [&b"http://"[..], b"https://"].iter().any(|scheme| origin.strip_prefix(*scheme) == Some(host))
}

/// Somebody else's page asked.
pub(crate) fn forged() -> Failure {
    Failure::new(Code::RequestForged, "a page that is not the console's own asked for this")
        .hint("use the console's own pages, or send the token in Authorization")
}

/// What somebody calls themselves, made fit for a log.
pub(crate) fn fit_name(name: &str) -> String {
    name.trim().chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect()
}

fn refused(what: &str) -> Failure {
    Failure::new(Code::TokenInvalid, what).hint("send it as Authorization: Bearer TOKEN")
}

#[cfg(test)]
mod tests;
