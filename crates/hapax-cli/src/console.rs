//! The console: the pages of the admin listener for people.
//!
//! Pages are rendered here from `templates/console`, with one stylesheet and one small script that are part of the
//! binary. Everything works without the script, except that the overview does not move. Pages show what the API
//! shows, through the same functions, and change records through the same audited ones.
//!
//! It knows how things look. Who may see them is decided before a request gets here, by the admin listener.

mod assets;
pub(crate) mod chart;
mod journal;
mod login;
mod overview;
pub(crate) mod record;
pub(crate) mod records;
mod settings;
pub(crate) mod words;

use std::sync::Arc;

use askama::Template;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};

use crate::admin::{Shared, status_of};
use crate::failure::{Code, Failure};

/// The pages of the navigation.
pub(crate) const PAGES: [(&str, &str); 4] =
    [("/", "Overview"), ("/records", "Records"), ("/audit", "Audit log"), ("/config", "Config")];

/// Every page for those who logged in.
pub(crate) fn routes() -> Vec<(&'static str, MethodRouter<Arc<Shared>>)> {
    vec![
        ("/", get(overview::page)),
        ("/live", get(overview::live)),
        ("/records", get(records::page)),
        ("/records/search", post(records::search)),
        ("/records/{id}", get(record::page)),
        ("/records/{id}/settle", get(record::settle_form).post(record::settle)),
        ("/records/{id}/release", get(record::release_form).post(record::release)),
        ("/records/{id}/delete", get(record::delete_form).post(record::delete)),
        ("/audit", get(journal::page)),
        ("/config", get(settings::page)),
        ("/logout", post(login::logout)),
    ]
}

/// The login, and what its page needs.
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

/// A refusal as a page.
pub(crate) fn refusal(failure: &Failure) -> Response {
    let status = status_of(failure.code());
    let title = words::sentence(failure.message());
    let (code, hint) = (failure.code().name(), failure.advice());
    let mut response = shown(&Refusal { status: status.as_u16(), code, title, hint });
    *response.status_mut() = status;
    response
}

/// A page, or what went wrong on the way to it.
type Page = Result<Response, Refused>;

/// A failure that is shown as a page.
struct Refused(Failure);

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self(failure)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        refusal(&self.0)
    }
}

fn shown(template: &impl Template) -> Response {
    match template.render() {
        Ok(text) => Html(text).into_response(),
        Err(error) => Failure::new(Code::Failed, "this page cannot be shown").because(error).into_response(),
    }
}

#[cfg(test)]
mod tests;
