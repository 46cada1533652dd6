//! [`Principal`]: who a request's caller is.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use hapax_core::{JsonPointer, JsonPointerError};
use http::header::{AUTHORIZATION, COOKIE, HeaderName, PROXY_AUTHORIZATION};
use http::request::Parts;

use super::bearer;
use crate::http::canonical::header::Fields;

/// Who a request's caller is (S-02). Whatever it is, only its hash is kept.
///
/// Best is something that stays the same when credentials are renewed, and that somebody in front has checked.
///
/// As text: `header:NAME`, `jwt:CLAIM` (`jwt:/a/b` for a claim inside another) or `none`.
#[derive(Clone)]
#[non_exhaustive]
pub enum Principal {
    /// All lines of a header; without one that says something there is no principal. By default `Authorization`,
    /// which is unsafe across rotation: a caller with a new credential is somebody else.
    Header(HeaderName),
    /// The string at this place among the claims of the bearer's JSON Web Token. The signature is **not** checked
    /// here: somebody in front must have done it. When there is no such string, the whole `Authorization` counts, so
    /// that two callers never meet.
    JwtClaim(JsonPointer),
    /// Whatever the function says. `None` and an empty answer both mean that there is no principal.
    Extract(Arc<Extract>),
    /// Nobody is told apart.
    None,
}

type Extract = dyn Fn(&Parts) -> Option<Vec<u8>> + Send + Sync;

impl Principal {
    /// The claim with this name, such as `sub`.
    pub fn jwt_claim(name: &str) -> Self {
        Self::JwtClaim(JsonPointer::member(name))
    }

    /// Whatever `extract` finds in a request's head, for example what a layer in front left in its extensions.
    pub fn extract(extract: impl Fn(&Parts) -> Option<Vec<u8>> + Send + Sync + 'static) -> Self {
        Self::Extract(Arc::new(extract))
    }

    /// Whether callers may write what they like unless somebody in front checks it. A credential that is hashed as
    /// a whole needs no check: who does not know it cannot use it.
    pub(crate) fn must_be_verified(&self) -> bool {
        match self {
            Self::Header(_) => !self.is_credential(),
            Self::JwtClaim(_) => true,
            Self::Extract(_) | Self::None => false,
        }
    }

    /// Whether this changes whenever a caller's credential does.
    pub(crate) fn is_credential(&self) -> bool {
        matches!(self, Self::Header(name) if [AUTHORIZATION, PROXY_AUTHORIZATION, COOKIE].contains(name))
    }

    /// Whether this is the name of a field that it is made of.
    pub(in crate::http) fn reads(&self, field: &[u8]) -> bool {
        let name = match self {
            Self::Header(name) => name,
            Self::JwtClaim(_) => &AUTHORIZATION,
            Self::Extract(_) | Self::None => return false,
        };
        name.as_str().as_bytes().eq_ignore_ascii_case(field)
    }

    pub(super) fn of<'a>(&self, parts: &'a Parts) -> Option<Cow<'a, [u8]>> {
        let principal = match self {
            Self::Header(name) => lines(Fields::of(&parts.headers), name),
            Self::JwtClaim(claim) => bearer::claim(&parts.headers, claim)
                .map(|claim| Cow::Owned(claim.into_bytes()))
                .or_else(|| lengths_and_lines(Fields::of(&parts.headers), &AUTHORIZATION).map(Cow::Owned)),
            Self::Extract(extract) => extract(parts).map(Cow::Owned),
            Self::None => None,
        };
        principal.filter(|principal| !principal.is_empty())
    }
}

/// The only line as it is, so that people can look a caller up by what it sent. Several are taken with their
/// lengths, which begin with a zero byte as no line does.
fn lines<'a>(fields: Fields<'a>, name: &HeaderName) -> Option<Cow<'a, [u8]>> {
    let mut lines = fields.lines(name);
    match (lines.next(), lines.next()) {
        (None, _) => None,
        (Some(line), None) => Some(Cow::Borrowed(line.as_bytes())),
        _ => lengths_and_lines(fields, name).map(Cow::Owned),
    }
}

fn lengths_and_lines(fields: Fields<'_>, name: &HeaderName) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for line in fields.lines(name).filter(|line| !line.is_empty()) {
        bytes.extend_from_slice(&(line.len() as u64).to_be_bytes());
        bytes.extend_from_slice(line.as_bytes());
    }
    (!bytes.is_empty()).then_some(bytes)
}

impl Default for Principal {
    fn default() -> Self {
        Self::Header(AUTHORIZATION)
    }
}

impl FromStr for Principal {
    type Err = PrincipalError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            Some(("header", name)) => name.parse().map(Self::Header).map_err(|_| PrincipalError::HeaderName),
            Some(("jwt", claim)) if claim.starts_with('/') => {
                claim.parse().map(Self::JwtClaim).map_err(PrincipalError::Claim)
            }
            Some(("jwt", claim)) if !claim.is_empty() => Ok(Self::jwt_claim(claim)),
            None if text == "none" => Ok(Self::None),
            _ => Err(PrincipalError::Unknown),
        }
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => write!(f, "header:{name}"),
            Self::JwtClaim(claim) => match claim.names() {
                [name] if !name.starts_with('/') => write!(f, "jwt:{name}"),
                _ => write!(f, "jwt:{claim}"),
            },
            Self::Extract(_) => f.write_str("extract"),
            Self::None => f.write_str("none"),
        }
    }
}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Principal({self})")
    }
}

/// Why a text names no principal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PrincipalError {
    /// It begins with none of the known words.
    Unknown,
    /// What follows `header:` is no header's name.
    HeaderName,
    /// What follows `jwt:` starts like a JSON pointer and is none.
    Claim(JsonPointerError),
}

impl fmt::Display for PrincipalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("the principal is none of `header:NAME`, `jwt:CLAIM` and `none`"),
            Self::HeaderName => f.write_str("the principal's `header:` is not followed by a header's name"),
            Self::Claim(_) => f.write_str("the principal's `jwt:` is not followed by a claim"),
        }
    }
}

impl Error for PrincipalError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unknown | Self::HeaderName => None,
            Self::Claim(error) => Some(error),
        }
    }
}
