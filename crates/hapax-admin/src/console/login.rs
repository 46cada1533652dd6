//! Login and logout.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use http::header::SET_COOKIE;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;

use super::shown;
use crate::audit::Action;
use crate::auth::{Actor, Peer, Via, fit_name, forged, is_own_page};
use crate::extract::{FormBody, QueryParams};
use crate::failure::Failure;
use crate::listener::Shared;

#[derive(Template)]
#[template(path = "console/login.html")]
struct Login {
    next: String,
    problem: Option<&'static str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Wanted {
    next: String,
}

pub(super) async fn page(QueryParams(wanted): QueryParams<Wanted>) -> Response {
    shown(&Login { next: own_path(&wanted.next).to_owned(), problem: None })
}

#[derive(Deserialize)]
pub(super) struct Entry {
    token: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    next: String,
}

pub(super) async fn login(
    State(shared): State<Arc<Shared>>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    FormBody(entry): FormBody<Entry>,
) -> Result<Response, Failure> {
    if !is_own_page(&headers) {
        return Err(forged());
    }
    let address = peer.0.ip().to_string();
    let next = own_path(&entry.next).to_owned();
    if !shared.token.is(entry.token.trim().as_bytes()) {
        tracing::warn!(from = %address, "a login to the console had a wrong token");
        let mut response = shown(&Login { next, problem: Some("The token is wrong.") });
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        return Ok(response);
    }
    let actor = Actor { name: fit_name(&entry.name), via: Via::Console, address };
    let number = shared.audit.begin(&actor, Action::Login, None, None).await?;
    shared.audit.end(number, "done").await?;
    let mut response = Redirect::to(&next).into_response();
    response.headers_mut().insert(SET_COOKIE, shared.cookies.issue(&actor.name));
    Ok(response)
}

pub(super) async fn logout(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    let mut response = Redirect::to("/login").into_response();
    response.headers_mut().insert(SET_COOKIE, shared.cookies.revoke(&headers));
    response
}

/// The path for the redirect after a login; any other URL could lead to an imitation of the console.
fn own_path(wanted: &str) -> &str {
    let is_own = wanted.starts_with('/')
        && !wanted.starts_with("//")
        && wanted.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if is_own { wanted } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_redirects_to_no_other_site() {
        for (wanted, expected) in [
            ("/records?id=ab", "/records?id=ab"),
            ("", "/"),
            ("https://evil.example", "/"),
            ("//evil.example", "/"),
            ("/\\evil.example", "/"),
            ("/a\r\nset-cookie: x", "/"),
            ("records", "/"),
        ] {
            assert_eq!(own_path(wanted), expected, "{wanted:?}");
        }
    }
}
