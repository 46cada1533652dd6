//! Redirects that keep method and body: a key goes on within its origin only (C-04).

use http::header::LOCATION;
use http::{HeaderMap, StatusCode};
use reqwest::Url;

/// Where the same request is sent again; `None` when the response is the answer.
pub(super) fn target(status: StatusCode, headers: &HeaderMap, url: &Url) -> Option<Url> {
    if !matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT) {
        return None;
    }
    let target = url.join(headers.get(LOCATION)?.to_str().ok()?).ok()?;
    (target.origin() == url.origin()).then_some(target)
}

#[cfg(test)]
mod tests;
