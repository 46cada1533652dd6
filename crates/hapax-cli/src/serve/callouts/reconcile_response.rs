//! The response of a `reconcile` URL, in JSON.
//!
//! ```json
//! { "applied": true, "status": 201, "headers": { "content-type": "application/json" }, "body": { "id": 7 } }
//! { "applied": false }
//! { "applied": null }
//! ```
//!
//! An error page, an empty body or a missing member settles nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hapax::Reconciled;
use hapax_admin::records::response::{Fields, response};
use http::Response;
use serde::Deserialize;
use serde_json::Value;

/// The response as it is received.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReconcileResponse {
    /// Whether the operation happened; null if that is unknown.
    applied: Option<bool>,
    /// The status of the response that retries receive.
    status: Option<u16>,
    #[serde(default)]
    headers: Fields,
    /// Text is used as it is, any other value as JSON.
    body: Option<Value>,
    /// A body that is not text, in base64.
    body_base64: Option<String>,
}

impl ReconcileResponse {
    /// The outcome, or an error if the response contradicts itself.
    pub(super) fn reconciled(self) -> Result<Reconciled<Response<Bytes>>, ()> {
        match self.applied {
            None => Ok(Reconciled::Unknown),
            Some(false) if self.status.is_none() => Ok(Reconciled::NotApplied),
            Some(false) => Err(()),
            Some(true) => self.response().map(Reconciled::Applied),
        }
    }

    fn response(self) -> Result<Response<Bytes>, ()> {
        let body = match (self.body, self.body_base64) {
            (None | Some(Value::Null), None) => Bytes::new(),
            (Some(Value::String(text)), None) => text.into(),
            (Some(value), None) => value.to_string().into(),
            (None, Some(text)) => STANDARD.decode(text).map_err(|_| ())?.into(),
            (Some(_), Some(_)) => return Err(()),
        };
        let answer = response(self.status.ok_or(())?, &self.headers, body).map_err(|_| ())?;
        let mut response = Response::new(answer.body);
        (*response.status_mut(), *response.headers_mut()) = (answer.status, answer.headers);
        Ok(response)
    }
}
