//! [`Answer`]: a recorded HTTP response, for tools that show records and settle them.
//!
//! The layer does not use it: it records and replays the responses that pass through it. Here an operator or a program
//! supplies the response for retries, so a field that cannot be replayed is an error instead of being dropped.

use std::fmt;

use bytes::Bytes;
use hapax_core::{Format, Recorded};
use http::{HeaderMap, HeaderName, Response, StatusCode};

use super::capture::wire::{FieldSection, HeadReader};
use super::capture::{self, ReplayRules, has_content};

/// The response of a record, stored or to be stored.
#[derive(Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The header fields. The framing is computed for each replay.
    pub headers: HeaderMap,
    /// The content.
    pub body: Bytes,
    /// The trailer fields.
    pub trailers: HeaderMap,
}

/// Why a response cannot be recorded.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// An interim status, 100 to 199.
    #[error("the status {} is interim: another response follows it", .0.as_u16())]
    Interim(StatusCode),
    /// A response with this status has no content.
    #[error("a response with status {} has no body", .0.as_u16())]
    Content(StatusCode),
    /// A field that belongs to one connection or one exchange and is never replayed.
    #[error("the field {0} belongs to one exchange and is never replayed")]
    Field(HeaderName),
}

impl Answer {
    /// A response with a body and no fields.
    pub fn new(status: StatusCode, body: impl Into<Bytes>) -> Self {
        Self { status, body: body.into(), ..Self::default() }
    }

    /// The response in a record; `None` if its outcome is not an HTTP response or cannot be read.
    pub fn of(recorded: &Recorded) -> Option<Self> {
        if recorded.format != Format::HTTP {
            return None;
        }
        let reader = HeadReader::new(&recorded.meta).ok()?;
        let mut answer = Self::new(reader.status(), recorded.payload.clone());
        for field in reader {
            let (kind, name, value) = field.ok()?;
            let map = match kind {
                FieldSection::Header => &mut answer.headers,
                FieldSection::Trailer => &mut answer.trailers,
            };
            map.try_append(name, value).ok()?;
        }
        Some(answer)
    }

    /// The outcome to settle a record with, so that retries get this response. The route decides which fields it
    /// replays.
    ///
    /// ```
    /// use hapax::http::Answer;
    /// use http::StatusCode;
    ///
    /// let recorded = Answer::new(StatusCode::CREATED, "made").recorded().unwrap();
    /// assert_eq!(Answer::of(&recorded).unwrap().body, "made");
    /// assert!(Answer::new(StatusCode::NO_CONTENT, "made").recorded().is_err());
    /// ```
    ///
    /// # Errors
    /// [`AnswerError`] if the response cannot be replayed.
    pub fn recorded(self) -> Result<Recorded, AnswerError> {
        if self.status.is_informational() {
            return Err(AnswerError::Interim(self.status));
        }
        if !has_content(self.status) && !self.body.is_empty() {
            return Err(AnswerError::Content(self.status));
        }
        // The route decides whether cookies are replayed.
        let rules = ReplayRules { set_cookie: true, ..ReplayRules::default() };
        if let Some(name) =
            self.headers.keys().chain(self.trailers.keys()).find(|name| !rules.keeps_trailer(name))
        {
            return Err(AnswerError::Field(name.clone()));
        }
        let mut response = Response::new(());
        (*response.status_mut(), *response.headers_mut()) = (self.status, self.headers);
        let (parts, ()) = response.into_parts();
        Ok(capture::record(&rules, None, &parts, &self.body, Some(&self.trailers)))
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Sizes only: the response may be confidential.
        f.debug_struct("Answer")
            .field("status", &self.status)
            .field("headers", &self.headers.len())
            .field("body_bytes", &self.body.len())
            .field("trailers", &self.trailers.len())
            .finish()
    }
}

#[cfg(test)]
mod tests;
