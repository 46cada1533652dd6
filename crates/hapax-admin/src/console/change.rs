//! The forms that change a record. Each states the consequence, requires a reason and a confirmation, and has the version
//! of the record that was shown.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use hapax_core::{RecordId, Verdict};
use http::header::CONTENT_TYPE;
use serde::Deserialize;

use super::{formatting, render};
pub(crate) use crate::api::changes::REASON_CHARS_MAX;
use crate::api::{self, Change, FormatName, SettleChange, VerdictName};
use crate::auth::Actor;
use crate::extract::{FormBody, Id};
use crate::failure::{Code, Failure};
use crate::listener::Shared;
use crate::problem::status as status_of;
use crate::records::response::{self, Fields, ResponseView};
use crate::records::settlement::{consequence_of, consequence_of_deleting};
use crate::time::brief;
use crate::view::{ClassView, Document, Payload, RecordView, or_dash};

/// A change of a record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RecordChange {
    Settle,
    Release,
    Delete,
}

#[derive(Template)]
#[template(path = "console/change.html")]
struct ChangeForm<'a> {
    title: &'static str,
    path: &'static str,
    style: &'static str,
    assurance: &'static str,
    consequence: String,
    record: &'a RecordView,
    short_id: String,
    state: &'static str,
    operation: String,
    fields: &'a FormFields,
    problem: Option<String>,
    /// The default retention of a result.
    retention: String,
}

impl ChangeForm<'_> {
    fn here(&self) -> &'static str {
        "/records"
    }
}

impl RecordChange {
    const fn path(self) -> &'static str {
        match self {
            Self::Settle => "settle",
            Self::Release => "release",
            Self::Delete => "delete",
        }
    }

    fn form<'a>(
        self,
        document: &'a Document,
        fields: &'a FormFields,
        problem: Option<String>,
    ) -> ChangeForm<'a> {
        let record = &document.record;
        let (title, style, assurance, consequence) = match self {
            Self::Settle => (
                "Settle as applied",
                "primary",
                "I have checked that the operation happened.",
                "will be settled as applied: retries receive the result given here, and nothing runs again"
                    .to_owned(),
            ),
            Self::Release => (
                "Release the key",
                "danger",
                "I have checked that the operation did not happen.",
                consequence_of(&Verdict::NotApplied),
            ),
            Self::Delete => (
                "Delete the record",
                "danger",
                "I know that the operation may run again.",
                consequence_of_deleting(record.state()).to_owned(),
            ),
        };
        ChangeForm {
            title,
            path: self.path(),
            style,
            assurance,
            consequence: format!("The record {consequence}."),
            short_id: formatting::short_id(&record.id),
            state: record.state().name(),
            operation: or_dash(&record.scope.operation),
            record,
            fields,
            problem,
            retention: document.settle_retention().map(brief).unwrap_or_default(),
        }
    }
}

/// The fields of a form.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct FormFields {
    version: String,
    reason: String,
    sure: String,
    class: String,
    payload: String,
    format: String,
    /// Empty for the default retention.
    hours: String,
    /// Of an HTTP response; empty if there is none.
    status: String,
    content_type: String,
    /// Further header fields, one per line.
    headers: String,
    body: String,
}

impl FormFields {
    /// The change, if it is confirmed and has a reason.
    fn confirmed(&self) -> Result<Change, Failure> {
        if self.sure != "yes" {
            return Err(Failure::new(Code::NotConfirmed, "not confirmed, nothing was changed"));
        }
        let reason = self.reason.trim();
        if reason.is_empty() {
            return Err(Failure::new(Code::InputInvalid, "a reason is required, for the audit log"));
        }
        Ok(Change { version: self.version.clone(), reason: Some(reason.to_owned()) })
    }

    fn settlement(&self) -> Result<SettleChange, Failure> {
        const MS_PER_HOUR: u64 = 3_600_000;
        let Change { version, reason } = self.confirmed()?;
        let hours = match self.hours.trim() {
            "" => None,
            hours => Some(hours.parse::<u64>().map_err(|error| {
                Failure::new(Code::InputInvalid, "a number of hours was expected").because(error)
            })?),
        };
        let retention_ms = hours.map(|hours| hours.saturating_mul(MS_PER_HOUR));
        if let Some(answer) = self.answer()? {
            return Ok(SettleChange {
                answer: Some(answer),
                retention_ms,
                ..SettleChange::bare(version, reason, VerdictName::Applied)
            });
        }
        let payload = Some(self.payload.clone()).filter(|payload| !payload.is_empty());
        Ok(SettleChange {
            class: Some(if self.class == "error" { ClassView::Error } else { ClassView::Success }),
            format: Some(if self.format == "function" { FormatName::Function } else { FormatName::Operator }),
            payload,
            retention_ms,
            ..SettleChange::bare(version, reason, VerdictName::Applied)
        })
    }

    /// The HTTP response, if one is given.
    fn answer(&self) -> Result<Option<ResponseView>, Failure> {
        let (status, content_type) = (self.status.trim(), self.content_type.trim());
        let mut headers = Fields::new();
        for line in self.headers.lines().filter(|line| !line.trim().is_empty()) {
            let (name, value) = response::parse_field(line)?;
            response::add(&mut headers, name, value);
        }
        if status.is_empty() {
            if headers.is_empty() && self.body.is_empty() {
                return Ok(None);
            }
            return Err(Failure::new(Code::InputInvalid, "an answer needs a status"));
        }
        let status = status
            .parse()
            .map_err(|error| Failure::new(Code::InputInvalid, "a status is a number").because(error))?;
        if !content_type.is_empty() && !self.body.is_empty() {
            response::add(&mut headers, CONTENT_TYPE.to_string(), content_type.to_owned());
        }
        // Browsers send line breaks as CR LF.
        let body = Some(self.body.replace("\r\n", "\n"));
        Ok(Some(ResponseView { status, headers, body, body_base64: None }))
    }
}

pub(super) async fn settle_form(State(shared): State<Arc<Shared>>, Id(id): Id) -> Result<Response, Failure> {
    form(&shared, id, RecordChange::Settle).await
}

pub(super) async fn release_form(State(shared): State<Arc<Shared>>, Id(id): Id) -> Result<Response, Failure> {
    form(&shared, id, RecordChange::Release).await
}

pub(super) async fn delete_form(State(shared): State<Arc<Shared>>, Id(id): Id) -> Result<Response, Failure> {
    form(&shared, id, RecordChange::Delete).await
}

pub(super) async fn settle(
    State(shared): State<Arc<Shared>>,
    Extension(actor): Extension<Actor>,
    Id(id): Id,
    FormBody(fields): FormBody<FormFields>,
) -> Result<Response, Failure> {
    let done = match fields.settlement() {
        Ok(change) => api::settle(&shared, actor, id, change).await.map(drop),
        Err(failure) => Err(failure),
    };
    finished(&shared, id, RecordChange::Settle, &fields, done).await
}

pub(super) async fn release(
    State(shared): State<Arc<Shared>>,
    Extension(actor): Extension<Actor>,
    Id(id): Id,
    FormBody(fields): FormBody<FormFields>,
) -> Result<Response, Failure> {
    let done = match fields.confirmed() {
        Ok(change) => api::release(&shared, actor, id, change).await.map(drop),
        Err(failure) => Err(failure),
    };
    finished(&shared, id, RecordChange::Release, &fields, done).await
}

pub(super) async fn delete(
    State(shared): State<Arc<Shared>>,
    Extension(actor): Extension<Actor>,
    Id(id): Id,
    FormBody(fields): FormBody<FormFields>,
) -> Result<Response, Failure> {
    let done = match fields.confirmed() {
        Ok(change) => api::delete(&shared, actor, id, change).await,
        Err(failure) => Err(failure),
    };
    finished(&shared, id, RecordChange::Delete, &fields, done).await
}

async fn form(shared: &Shared, id: RecordId, kind: RecordChange) -> Result<Response, Failure> {
    let document = shared.document(&id, Payload::Hidden).await?;
    Ok(render(&kind.form(&document, &FormFields::default(), None)))
}

/// Redirects after a change, or shows the form again with the error.
async fn finished(
    shared: &Shared,
    id: RecordId,
    kind: RecordChange,
    fields: &FormFields,
    done: Result<(), Failure>,
) -> Result<Response, Failure> {
    let failure = match done {
        Ok(()) => return Ok(after(id, kind)),
        Err(failure) => failure,
    };
    let Ok(document) = shared.document(&id, Payload::Hidden).await else { return Err(failure) };
    let problem = Some(formatting::sentence(failure.message()));
    let mut response = render(&kind.form(&document, fields, problem));
    *response.status_mut() = status_of(failure.code());
    Ok(response)
}

fn after(id: RecordId, kind: RecordChange) -> Response {
    let to = match kind {
        RecordChange::Delete => "/records?done=deleted".to_owned(),
        RecordChange::Settle | RecordChange::Release => format!("/records/{id}?done={}", kind.path()),
    };
    Redirect::to(&to).into_response()
}
