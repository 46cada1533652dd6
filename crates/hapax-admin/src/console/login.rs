//! Login and logout.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use http::header::SET_COOKIE;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;

use super::render;
use crate::audit::Action;
use crate::auth::{Actor, Peer, Via, forged_request, is_same_origin, sanitized_name};
use crate::extract::{FormBody, QueryParams};
use crate::failure::Failure;
use crate::listener::Shared;

#[derive(Template)]
#[template(path = "console/login.html")]
struct LoginPage {
    next: String,
    problem: Option<&'static str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PageQuery {
    next: String,
}

pub(super) async fn page(QueryParams(query): QueryParams<PageQuery>) -> Response {
    render(&LoginPage { next: own_path(&query.next).to_owned(), problem: None })
}

#[derive(Deserialize)]
pub(super) struct LoginForm {
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
    FormBody(form): FormBody<LoginForm>,
) -> Result<Response, Failure> {
    if !is_same_origin(&headers) {
        return Err(forged_request());
    }
    let address = peer.0.ip().to_string();
    let next = own_path(&form.next).to_owned();
    if !shared.token.is(form.token.trim().as_bytes()) {
        tracing::warn!(from = %address, "a login to the console had a wrong token");
        let mut response = render(&LoginPage { next, problem: Some("The token is wrong.") });
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        return Ok(response);
    }
    let actor = Actor { name: sanitized_name(&form.name), via: Via::Console, address };
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
fn own_path(requested: &str) -> &str {
    let is_own = requested.starts_with('/')
        && !requested.starts_with("//")
        && requested.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if is_own { requested } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_redirects_to_no_other_site() {
        for (requested, expected) in [
            ("/records?id=ab", "/records?id=ab"),
            ("", "/"),
            ("https://evil.example", "/"),
            ("//evil.example", "/"),
            ("/\\evil.example", "/"),
            ("/a\r\nset-cookie: x", "/"),
            ("records", "/"),
        ] {
            assert_eq!(own_path(requested), expected, "{requested:?}");
        }
    }
}
