//! [`Credentials`]: which headers hold a caller's credentials, and the bytes that identify a caller by them.

use std::borrow::Cow;
use std::sync::Arc;

use http::HeaderName;
use http::header::AUTHORIZATION;

use super::principal::lines;
use crate::http::canonical::header::Fields;

/// The default headers, sorted by name.
const USUAL: [HeaderName; 5] = [
    HeaderName::from_static("api-key"),
    AUTHORIZATION,
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-auth-token"),
    HeaderName::from_static("x-shopify-access-token"),
];

/// The prefix of the bytes of named credentials. A single value has no zero byte, and a list of lines begins with the
/// length of a line that is not empty, so neither has this prefix.
const NAMED: &[u8] = b"\0\0\0\0\0\0\0\0c";

/// The headers that hold credentials. Sorted by name, so that the order of a list in a file does not count.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Credentials(Arc<[HeaderName]>);

impl Default for Credentials {
    fn default() -> Self {
        Self(USUAL.into())
    }
}

impl Credentials {
    pub(crate) fn new(names: impl IntoIterator<Item = HeaderName>) -> Self {
        let mut names: Vec<HeaderName> = names.into_iter().collect();
        names.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
        names.dedup();
        Self(names.into())
    }

    pub(crate) fn names(&self) -> &[HeaderName] {
        &self.0
    }

    pub(crate) fn has(&self, name: &HeaderName) -> bool {
        self.0.contains(name)
    }

    /// All credentials of a request. `Authorization` alone is taken unchanged, so that operators can look a caller up
    /// by what it sent; everything else is taken with the names of the headers, so that a value counts in its own
    /// header only.
    pub(super) fn of<'a>(&self, fields: Fields<'a>) -> Option<Cow<'a, [u8]>> {
        let is_there = |name: &&HeaderName| fields.lines(name).any(|line| !line.is_empty());
        let mut present = self.0.iter().filter(is_there);
        match (present.next()?, present.next()) {
            (only, None) if *only == AUTHORIZATION => lines(fields, only),
            _ => Some(Cow::Owned(self.named(fields))),
        }
    }

    fn named(&self, fields: Fields<'_>) -> Vec<u8> {
        let mut bytes = NAMED.to_vec();
        for name in &*self.0 {
            for line in fields.lines(name).filter(|line| !line.is_empty()) {
                push(&mut bytes, name.as_str().as_bytes());
                push(&mut bytes, line.as_bytes());
            }
        }
        bytes
    }
}

/// Adds a part with its length, so that different lists of parts have different bytes.
pub(super) fn push(bytes: &mut Vec<u8>, part: &[u8]) {
    bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
    bytes.extend_from_slice(part);
}
