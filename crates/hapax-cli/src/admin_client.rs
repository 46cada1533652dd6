//! The commands' client of the admin API of a running sidecar. It returns the same views as a store that is opened here.

mod request;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hapax::http::Answer;
use hapax_admin::api::{Change, Filter, FormatName, LIMIT_MAX, SettleChange, VerdictName};
use hapax_admin::records::response::ResponseView;
use hapax_admin::view::{Document, PageView, Payload, RecordView};
use hapax_admin::{Problem, Token};
use hapax_core::{Format, Query, RecordId, StoreErrorKind, Verdict};
use http::{Method, Uri};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::failure::{Code, Failure};
use crate::http_client::{HttpClient, PoolOptions};

/// The codes of the API.
const CODES: [Code; 26] = [
    Code::KeyInvalid,
    Code::InputInvalid,
    Code::StoreMissing,
    Code::StoreDamaged,
    Code::RecordMissing,
    Code::RecordAmbiguous,
    Code::RecordUnreadable,
    Code::RecordChanged,
    Code::InProgress,
    Code::NotUncertain,
    Code::TokenInvalid,
    Code::RequestForged,
    Code::HostUnknown,
    Code::RouteMissing,
    Code::MethodRefused,
    Code::TooLarge,
    Code::AuditFailed,
    Code::Overloaded,
    Code::Store(StoreErrorKind::Unavailable),
    Code::Store(StoreErrorKind::Unknown),
    Code::Store(StoreErrorKind::Full),
    Code::Store(StoreErrorKind::TooLarge),
    Code::Store(StoreErrorKind::Stopped),
    Code::Store(StoreErrorKind::Incompatible),
    Code::Store(StoreErrorKind::InUse),
    Code::Store(StoreErrorKind::Invalid),
];

/// A command sends its requests one at a time, so one connection is enough.
const POOL: PoolOptions = PoolOptions { idle_max: 1, idle_timeout: Duration::from_secs(60) };

/// A running sidecar.
#[derive(Clone, Debug)]
pub(crate) struct AdminClient {
    /// Scheme and authority of the listener.
    base: Uri,
    token: Token,
    http: HttpClient,
}

impl AdminClient {
    /// The sidecar whose admin listener is at `url`.
    pub(crate) fn new(url: &str, token: Token) -> Result<Self, Failure> {
        let base: Option<Uri> = url.parse().ok();
        let is_listener = |base: &Uri| {
            let is_http = matches!(base.scheme_str(), Some("http" | "https"));
            is_http && base.host().is_some() && matches!(base.path(), "" | "/")
        };
        let base = base.filter(is_listener).ok_or_else(|| {
            Failure::new(Code::InputInvalid, "this is not the URL of an admin listener")
                .hint("write it as `hapax serve` prints it, such as http://127.0.0.1:8081")
        })?;
        Ok(Self { base, token, http: HttpClient::new(POOL) })
    }

    /// Checks that the listener is reachable and accepts the token.
    pub(crate) async fn probe(&self) -> Result<(), Failure> {
        self.send::<Value>(Method::GET, "/api/v1/audit?limit=1", None::<&()>).await.map(drop)
    }

    /// The entries of the audit log.
    #[cfg(test)]
    pub(crate) async fn audit(&self) -> Result<Vec<Value>, Failure> {
        let mut page: Value = self.send(Method::GET, "/api/v1/audit", None::<&()>).await?;
        Ok(page["entries"].as_array_mut().map(std::mem::take).unwrap_or_default())
    }

    /// One page of a listing.
    pub(crate) async fn page(&self, query: &Query) -> Result<PageView, Failure> {
        let mut step = filter(query, query.limit);
        let mut page: PageView = self.send(Method::POST, "/api/v1/records/search", Some(&step)).await?;
        loop {
            let left = query.limit.saturating_sub(page.records.len() + page.unreadable.len());
            if left == 0 || page.next.is_none() {
                return Ok(page);
            }
            step = Filter { cursor: page.next.take(), ..filter(query, left) };
            page.append(self.send(Method::POST, "/api/v1/records/search", Some(&step)).await?);
        }
    }

    /// One record.
    pub(crate) async fn show(&self, id: &RecordId, payload: Payload) -> Result<Document, Failure> {
        let query = if payload == Payload::Shown { "?payload=true" } else { "" };
        self.send(Method::GET, &format!("/api/v1/records/{id}{query}"), None::<&()>).await
    }

    /// Settles the version of the record that was shown.
    pub(crate) async fn settle(
        &self,
        record: &RecordView,
        verdict: Verdict,
        reason: Option<&str>,
    ) -> Result<(), Failure> {
        let change = settle_change(record.version.clone(), verdict, reason.map(str::to_owned));
        self.change(record, "settle", &change).await
    }

    /// Deletes the version of the record that was shown.
    pub(crate) async fn delete(&self, record: &RecordView, reason: Option<&str>) -> Result<(), Failure> {
        let change = Change { version: record.version.clone(), reason: reason.map(str::to_owned) };
        self.change(record, "delete", &change).await
    }

    async fn change(&self, record: &RecordView, what: &str, change: &impl Serialize) -> Result<(), Failure> {
        let path = format!("/api/v1/records/{}/{what}", record.id);
        self.send::<Value>(Method::POST, &path, Some(change)).await.map(drop)
    }

    async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T, Failure> {
        let body = body
            .map(serde_json::to_vec)
            .transpose()
            .map_err(|error| not_an_admin_listener().because(error))?;
        let answer = request::send(&self.http, &self.base, &self.token, method, path, body).await?;
        let (status, body) = (answer.status(), answer.into_body());
        if status.is_success() {
            return serde_json::from_slice(&body).map_err(|error| not_an_admin_listener().because(error));
        }
        Err(match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) => failure_of(problem),
            Err(_) => not_an_admin_listener().because(format!("status {status} without a problem document")),
        })
    }
}

fn filter(query: &Query, limit: usize) -> Filter {
    let millis = |span: std::time::Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    Filter {
        state: query.states.iter().map(|state| (*state).into()).collect(),
        namespace: query.namespace.clone(),
        operation: query.operation_prefix.clone(),
        id: query.id_prefix.clone(),
        key: None,
        older_than_ms: query.age_min.map(millis),
        newer_than_ms: query.age_max.map(millis),
        limit: Some(u32::try_from(limit).unwrap_or(LIMIT_MAX).min(LIMIT_MAX)),
        cursor: query.cursor.clone(),
    }
}

fn settle_change(version: String, verdict: Verdict, reason: Option<String>) -> SettleChange {
    let Verdict::Applied { recorded, retention } = verdict else {
        return SettleChange::bare(version, reason, VerdictName::NotApplied);
    };
    let retention_ms = Some(u64::try_from(retention.as_millis()).unwrap_or(u64::MAX));
    if let Some(answer) = Answer::of(&recorded) {
        let answer = Some(ResponseView::of(&answer));
        return SettleChange {
            answer,
            retention_ms,
            ..SettleChange::bare(version, reason, VerdictName::Applied)
        };
    }
    let (format, payload_base64) = match recorded.format {
        Format::NOT_KEPT => (None, None),
        Format::FUNCTION => (Some(FormatName::Function), Some(STANDARD.encode(&recorded.payload))),
        _ => (Some(FormatName::Operator), Some(STANDARD.encode(&recorded.payload))),
    };
    SettleChange {
        class: Some(recorded.class.into()),
        format,
        payload_base64,
        retention_ms,
        ..SettleChange::bare(version, reason, VerdictName::Applied)
    }
}

/// The failure that a problem document describes.
fn failure_of(problem: Problem) -> Failure {
    let known = CODES.into_iter().find(|code| code.name() == problem.code());
    let failure = Failure::new(known.unwrap_or(Code::Failed), problem.detail);
    let failure = match (known, problem.causes.is_empty()) {
        (None, _) => failure.because(format!("the sidecar reports {}", problem.kind)),
        (Some(_), true) => failure,
        (Some(_), false) => failure.because(problem.causes.join(": ")),
    };
    match problem.hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn not_an_admin_listener() -> Failure {
    Failure::new(Code::AdminUnavailable, "the response is not that of an admin listener")
        .hint("check the URL; `hapax serve` prints its admin address when it starts")
}

#[cfg(test)]
pub(crate) mod test_listener;
#[cfg(test)]
mod tests;
