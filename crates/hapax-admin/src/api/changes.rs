//! Settling, releasing and deleting. Every change is in the audit log before it begins and after it has ended, and
//! continues when the client disconnects.

use std::future::Future;
use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hapax_core::{Format, RecordId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::filter::{RecordPath, millis};
use crate::audit::Action;
use crate::auth::Actor;
use crate::extract::{Id, JsonBody};
use crate::failure::{Code, Failure};
use crate::listener::Shared;
use crate::openapi;
use crate::records::response::ResponseView;
use crate::records::settlement::{self, Decision};
use crate::view::{ClassView, Document, Payload};

/// The most characters of a reason.
pub(crate) const REASON_CHARS_MAX: usize = 500;

/// The version of the record to change, and the reason.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The `version` of the record that was read.
    pub version: String,
    /// Why, for the audit log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 500)]
    pub reason: Option<String>,
}

/// A decision about an uncertain record.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SettleChange {
    /// The `version` of the record that was read.
    pub version: String,
    /// Why, for the audit log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 500)]
    pub reason: Option<String>,
    /// Whether the operation happened.
    pub verdict: VerdictName,
    /// Whether it succeeded. By default `success`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ClassView>,
    /// The format of the payload. By default `operator`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<FormatName>,
    /// The result that retries receive, as text. Without a payload they learn only that the operation happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// The same in base64, for a result that is not text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^([0-9A-Za-z+/]{4})*$")]
    pub payload_base64: Option<String>,
    /// The HTTP response that retries receive, instead of a payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<ResponseView>,
    /// How long retries receive it. By default the retention of the record's route; a day for a function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 9007199254740991_u64)]
    pub retention_ms: Option<u64>,
}

/// Whether an uncertain operation happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerdictName {
    /// It happened: retries receive the given result.
    Applied,
    /// It did not happen: the next request with the key runs it.
    NotApplied,
}

/// The format of a payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FormatName {
    /// A note for operators.
    Operator,
    /// The result of a function, in JSON.
    Function,
}

impl SettleChange {
    /// A settlement without a result.
    pub fn bare(version: String, reason: Option<String>, verdict: VerdictName) -> Self {
        Self {
            version,
            reason,
            verdict,
            class: None,
            format: None,
            payload: None,
            payload_base64: None,
            answer: None,
            retention_ms: None,
        }
    }

    fn decision(&self) -> Result<Decision, Failure> {
        match (self.verdict, &self.answer) {
            (VerdictName::Applied, _) => {}
            (VerdictName::NotApplied, None) => return Ok(Decision::NotApplied),
            (VerdictName::NotApplied, Some(_)) => {
                return Err(Failure::new(
                    Code::InputInvalid,
                    "an operation that did not happen has no answer",
                ));
            }
        }
        let retention = millis("retention_ms", self.retention_ms)?;
        if let Some(answer) = &self.answer {
            let has_payload = self.payload.is_some() || self.payload_base64.is_some();
            if has_payload || self.class.is_some() || self.format.is_some() {
                return Err(Failure::new(Code::InputInvalid, "both an answer and another result are given")
                    .hint("the status and the body of an answer replace class, format and payload"));
            }
            return Ok(Decision::Applied { recorded: answer.recorded()?, retention });
        }
        let payload = match (&self.payload, &self.payload_base64) {
            (Some(_), Some(_)) => {
                return Err(Failure::new(Code::InputInvalid, "two payloads are given")
                    .hint("use either payload or payload_base64"));
            }
            (Some(text), None) => Some(text.clone().into_bytes()),
            (None, Some(digits)) => Some(STANDARD.decode(digits).map_err(|error| {
                Failure::new(Code::InputInvalid, "payload_base64 is not base64").because(error)
            })?),
            (None, None) => None,
        };
        let format = match self.format {
            Some(FormatName::Function) => Format::FUNCTION,
            Some(FormatName::Operator) | None => Format::OPERATOR,
        };
        let class = self.class.unwrap_or(ClassView::Success).into();
        Ok(Decision::Applied { recorded: settlement::recorded(class, format, payload)?, retention })
    }
}

/// Decide an uncertain record
///
/// The record of an HTTP request is settled with an `answer`, which its retries then receive; that of a function with a
/// `payload` in its format.
#[utoipa::path(post, path = "/api/v1/records/{id}/settle", tag = "records", params(RecordPath),
    request_body = SettleChange,
    responses((status = 200, description = "Settled", body = Document),
        (status = 400, response = openapi::BadInput), (status = 401, response = openapi::NoToken),
        (status = 403, response = openapi::Forged), (status = 404, response = openapi::NoRecord),
        (status = 409, response = openapi::Conflict), (status = 413, response = openapi::TooLarge),
        (status = 503, response = openapi::Unavailable)))]
pub(crate) async fn settle_route(
    State(shared): State<Arc<Shared>>,
    Extension(actor): Extension<Actor>,
    Id(id): Id,
    JsonBody(change): JsonBody<SettleChange>,
) -> Result<Json<Document>, Failure> {
    settle(&shared, actor, id, change).await.map(Json)
}

/// Free the key of an uncertain record
///
/// The same as settling it as not applied: the next request with the key runs the operation.
#[utoipa::path(post, path = "/api/v1/records/{id}/release", tag = "records", params(RecordPath),
    request_body = Change,
    responses((status = 200, description = "Released", body = Document),
        (status = 400, response = openapi::BadInput), (status = 401, response = openapi::NoToken),
        (status = 403, response = openapi::Forged), (status = 404, response = openapi::NoRecord),
        (status = 409, response = openapi::Conflict), (status = 413, response = openapi::TooLarge),
        (status = 503, response = openapi::Unavailable)))]
pub(crate) async fn release_route(
    State(shared): State<Arc<Shared>>,
    Extension(actor): Extension<Actor>,
    Id(id): Id,
    JsonBody(change): JsonBody<Change>,
) -> Result<Json<Document>, Failure> {
    release(&shared, actor, id, change).await.map(Json)
}

/// A deleted record.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct DeletedDocument {
    /// `deleted`.
    done: String,
    /// The record's id.
    id: String,
}

/// Remove a record
///
/// The next request with its key runs the operation again. A record in progress is not removed.
#[utoipa::path(post, path = "/api/v1/records/{id}/delete", tag = "records", params(RecordPath),
    request_body = Change,
    responses((status = 200, description = "Removed", body = DeletedDocument),
        (status = 400, response = openapi::BadInput), (status = 401, response = openapi::NoToken),
        (status = 403, response = openapi::Forged), (status = 404, response = openapi::NoRecord),
        (status = 409, response = openapi::Conflict), (status = 413, response = openapi::TooLarge),
        (status = 503, response = openapi::Unavailable)))]
pub(crate) async fn delete_route(
    State(shared): State<Arc<Shared>>,
    Extension(actor): Extension<Actor>,
    Id(id): Id,
    JsonBody(change): JsonBody<Change>,
) -> Result<Json<DeletedDocument>, Failure> {
    delete(&shared, actor, id, change).await?;
    Ok(Json(DeletedDocument { done: "deleted".to_owned(), id: id.to_string() }))
}

/// Decides an uncertain record.
pub(crate) async fn settle(
    shared: &Arc<Shared>,
    actor: Actor,
    id: RecordId,
    change: SettleChange,
) -> Result<Document, Failure> {
    let action = match change.verdict {
        VerdictName::Applied => Action::SettleApplied,
        VerdictName::NotApplied => Action::SettleNotApplied,
    };
    let decision = change.decision()?;
    decide(shared, actor, action, id, Change { version: change.version, reason: change.reason }, decision)
        .await
}

/// Frees the key of an uncertain record.
pub(crate) async fn release(
    shared: &Arc<Shared>,
    actor: Actor,
    id: RecordId,
    change: Change,
) -> Result<Document, Failure> {
    decide(shared, actor, Action::Release, id, change, Decision::NotApplied).await
}

/// Removes a record.
pub(crate) async fn delete(
    shared: &Arc<Shared>,
    actor: Actor,
    id: RecordId,
    change: Change,
) -> Result<(), Failure> {
    let records = shared.records.clone();
    let work = async move { records.delete(&id, &change.version).await };
    audited(shared, actor, Action::Delete, id, change.reason, work).await
}

async fn decide(
    shared: &Arc<Shared>,
    actor: Actor,
    action: Action,
    id: RecordId,
    change: Change,
    decision: Decision,
) -> Result<Document, Failure> {
    let deciding = shared.clone();
    let work = async move {
        let records = &deciding.records;
        let operation = records.show(&id, Payload::Hidden).await?.record.scope.operation;
        let verdict = decision.verdict((deciding.retention)(&operation));
        let done = settlement::done(&verdict).to_owned();
        records.settle(&id, &change.version, verdict).await?;
        let settled = records.show(&id, Payload::Hidden).await?;
        Ok(Document { done: Some(done), ..settled })
    };
    audited(shared, actor, action, id, change.reason, work).await
}

/// Runs `work` between the start and the end of an entry in the audit log.
pub(super) async fn audited<T: Send + 'static>(
    shared: &Arc<Shared>,
    actor: Actor,
    action: Action,
    id: RecordId,
    reason: Option<String>,
    work: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> Result<T, Failure> {
    let reason = reason.map(checked_reason).transpose()?;
    let (audit, counting) = (shared.audit.clone(), shared.clone());
    let task = async move {
        let number = audit.begin(&actor, action, Some(id.to_string()), reason).await?;
        let done = work.await;
        let ended = audit.end(number, done.as_ref().map_or_else(|failure| failure.code().name(), |_| "done"));
        ended.await?;
        *counting.counted.lock().await = None;
        done
    };
    // A task continues when the request is dropped, because its client disconnects or it times out.
    let done = shared.tasks.spawn(task).await;
    done.unwrap_or_else(|error| {
        Err(Failure::new(Code::Failed, "the action ended unexpectedly").because(error))
    })
}

fn checked_reason(reason: String) -> Result<String, Failure> {
    let reason = reason.trim();
    if reason.chars().count() > REASON_CHARS_MAX {
        return Err(Failure::new(
            Code::InputInvalid,
            format!("a reason has at most {REASON_CHARS_MAX} characters"),
        ));
    }
    Ok(reason.to_owned())
}
