//! The console: the pages of the admin listener.
//!
//! Pages are rendered from `templates/console`, with one stylesheet and one small script that are part of the binary. All
//! pages work without the script; only the overview then does not refresh itself. Pages call the same functions as the API,
//! so changes are in the audit log too. Requests are authenticated before they reach the console.

mod assets;
mod audit_log;
pub(crate) mod change;
pub(crate) mod chart;
mod config;
pub(crate) mod formatting;
mod login;
mod overview;
mod record;
pub(crate) mod records;

use std::sync::Arc;

use askama::Template;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};

use crate::failure::{Code, Failure};
use crate::listener::Shared;
use crate::problem::Problem;

/// The pages of the navigation.
pub(crate) const PAGES: [(&str, &str); 4] =
    [("/", "Overview"), ("/records", "Records"), ("/audit", "Audit log"), ("/config", "Config")];

/// The pages that need a login.
pub(crate) fn routes() -> Vec<(&'static str, MethodRouter<Arc<Shared>>)> {
    vec![
        ("/", get(overview::page)),
        ("/live", get(overview::live)),
        ("/records", get(records::page)),
        ("/records/search", post(records::search)),
        ("/records/{id}", get(record::page)),
        ("/records/{id}/settle", get(change::settle_form).post(change::settle)),
        ("/records/{id}/release", get(change::release_form).post(change::release)),
        ("/records/{id}/delete", get(change::delete_form).post(change::delete)),
        ("/audit", get(audit_log::page)),
        ("/config", get(config::page)),
        ("/logout", post(login::logout)),
    ]
}

/// The login page and its assets.
pub(crate) fn open_routes() -> Vec<(&'static str, MethodRouter<Arc<Shared>>)> {
    vec![
        ("/login", get(login::page).post(login::login)),
        ("/assets/console.css", get(assets::style)),
        ("/assets/console.js", get(assets::script)),
        ("/assets/icon.svg", get(assets::icon)),
    ]
}

#[derive(Template)]
#[template(path = "console/refusal.html")]
struct Refusal<'a> {
    status: u16,
    code: &'a str,
    title: String,
    hint: Option<&'a str>,
}

/// The response, with a problem document rendered as a page.
pub(crate) fn as_page(response: Response) -> Response {
    let Some(problem) = response.extensions().get::<Problem>() else { return response };
    let refusal = Refusal {
        status: problem.status,
        code: problem.code(),
        title: formatting::sentence(&problem.detail),
        hint: problem.hint.as_deref(),
    };
    let mut page = render(&refusal);
    *page.status_mut() = response.status();
    page
}

fn render(template: &impl Template) -> Response {
    match template.render() {
        Ok(text) => Html(text).into_response(),
        Err(error) => {
            Failure::new(Code::Failed, "the page cannot be rendered").because(error).into_response()
        }
    }
}

#[cfg(test)]
mod tests;
