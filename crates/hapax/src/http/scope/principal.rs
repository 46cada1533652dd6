//! [`Principal`]: how a request's caller is identified.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use hapax_core::{JsonPointer, JsonPointerError};
use http::header::{AUTHORIZATION, COOKIE, HeaderName, PROXY_AUTHORIZATION};
use http::request::Parts;

use super::bearer;
use super::credentials::{Credentials, push};
use crate::http::canonical::header::Fields;

/// The prefix of the bytes of a source that is not the first of its list. No source alone has this prefix.
const SOURCE: &[u8] = b"\0\0\0\0\0\0\0\0s";

/// How a request's caller is identified (S-02). Only a hash of the value is stored.
///
/// Best is a value that stays the same when credentials are renewed, and that a component in front has verified.
///
/// As text: `credentials`, `header:NAME`, `cookie:NAME`, `jwt:CLAIM` (`jwt:/a/b` for a claim inside another) or `none`.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Principal {
    /// All credential headers that are present, each with its name: `Authorization`, `X-Api-Key` and others
    /// ([`credential_headers`](crate::http::HttpPolicy::credential_headers)). Unsafe across rotation: a caller with a
    /// new credential is another caller. A request with a cookie and no such header is refused: its session may be in
    /// the cookie, and only the configuration can name that cookie.
    #[default]
    Credentials,
    /// All lines of a header; if it is missing or empty there is no principal.
    Header(HeaderName),
    /// The value of the cookie with this name, such as a session's. It must be hard to guess, as a session id is.
    Cookie(Arc<str>),
    /// The string at this pointer among the claims of the bearer's JSON Web Token. The signature is **not** verified
    /// here: a component in front must have done it. If there is no such string, the whole `Authorization` counts, so
    /// that different callers never share a scope.
    JwtClaim(JsonPointer),
    /// The result of the function. `None` and an empty value both mean that there is no principal.
    Extract(Arc<Extract>),
    /// The name that the function of [`authorise_as`](crate::http::HttpPolicy::authorise_as) returns. A caller without
    /// a name is refused.
    Authorised,
    /// The first of several sources that has a value; made by [`first_of`](Self::first_of).
    FirstOf(Sources),
    /// All callers are the same.
    None,
}

type Extract = dyn Fn(&Parts) -> Option<Vec<u8>> + Send + Sync;

/// Several sources of a principal, in order.
#[derive(Clone)]
pub struct Sources(Arc<[Principal]>);

impl Principal {
    /// The cookie with this name, such as `sid`.
    pub fn cookie(name: impl Into<Arc<str>>) -> Self {
        Self::Cookie(name.into())
    }

    /// The claim with this name, such as `sub`.
    pub fn jwt_claim(name: &str) -> Self {
        Self::JwtClaim(JsonPointer::member(name))
    }

    /// The result of `extract` for a request's head, for example a value that an outer layer put into its extensions.
    pub fn extract(extract: impl Fn(&Parts) -> Option<Vec<u8>> + Send + Sync + 'static) -> Self {
        Self::Extract(Arc::new(extract))
    }

    /// The first of these that has a value. Equal values of two sources are two callers.
    ///
    /// The component in front must verify every source that a request has, not only one of them: otherwise a caller who
    /// is identified by a later one can forge an earlier one. A source can be appended at any time: callers identified
    /// by the earlier ones keep their records.
    pub fn first_of(sources: impl IntoIterator<Item = Self>) -> Self {
        let mut flat = Vec::new();
        for source in sources {
            match source {
                Self::FirstOf(inner) => flat.extend(inner.0.iter().cloned()),
                Self::None => {}
                source => flat.push(source),
            }
        }
        match flat.len() {
            0 => Self::None,
            1 => flat.remove(0),
            _ => Self::FirstOf(Sources(flat.into())),
        }
    }

    /// The source itself, or the sources of a list.
    pub(crate) fn sources(&self) -> &[Self] {
        match self {
            Self::FirstOf(sources) => &sources.0,
            source => std::slice::from_ref(source),
        }
    }

    /// Whether only code can choose it, or a part of it.
    pub(crate) fn is_code(&self) -> bool {
        self.sources().iter().any(|source| matches!(source, Self::Extract(_) | Self::Authorised))
    }

    /// Whether the field with this name, in any case, affects who the caller is, or whether there is a principal at
    /// all.
    pub(super) fn reads(&self, credentials: &Credentials, field: &[u8]) -> bool {
        let is_it = |name: &HeaderName| name.as_str().as_bytes().eq_ignore_ascii_case(field);
        self.sources().iter().any(|source| match source {
            Self::Credentials => credentials.names().iter().any(is_it) || is_it(&COOKIE),
            Self::Header(name) => is_it(name),
            Self::Cookie(_) => is_it(&COOKIE),
            Self::JwtClaim(_) => is_it(&AUTHORIZATION),
            Self::Extract(_) | Self::Authorised | Self::FirstOf(_) | Self::None => false,
        })
    }

    /// Whether callers can forge the value unless a component in front verifies it. A credential that is hashed as a
    /// whole needs no verification: only its owner can present it.
    pub(crate) fn must_be_verified(&self, credentials: &Credentials) -> bool {
        self.sources().iter().any(|source| match source {
            Self::Header(_) => !source.is_credential(credentials),
            Self::JwtClaim(_) => true,
            _ => false,
        })
    }

    /// Whether the value changes with a caller's credential.
    pub(crate) fn is_credential(&self, credentials: &Credentials) -> bool {
        self.sources().iter().all(|source| match source {
            Self::Header(name) => {
                [AUTHORIZATION, PROXY_AUTHORIZATION, COOKIE].contains(name)
                    || Credentials::default().has(name)
                    || credentials.has(name)
            }
            Self::Credentials | Self::Cookie(_) => true,
            _ => false,
        })
    }

    /// Whether callers may be distinguishable only by a cookie, while no cookie is among the sources.
    pub(super) fn overlooks_cookies(&self) -> bool {
        let sources = self.sources();
        let is_cookie = |source: &Self| {
            matches!(source, Self::Cookie(_)) || matches!(source, Self::Header(name) if *name == COOKIE)
        };
        sources.iter().any(|source| matches!(source, Self::Credentials)) && !sources.iter().any(is_cookie)
    }

    /// The caller's identity. `authorised` is the name of the authorised caller, if it has one.
    pub(super) fn of<'a>(
        &self,
        credentials: &Credentials,
        parts: &'a Parts,
        authorised: Option<&'a [u8]>,
    ) -> Option<Cow<'a, [u8]>> {
        let fields = Fields::of(&parts.headers);
        let value = match self.sources() {
            [source] => source.value_of(credentials, parts, fields, authorised),
            sources => sources.iter().enumerate().find_map(|(index, source)| {
                let value = source.value_of(credentials, parts, fields, authorised)?;
                let is_distinct = matches!(source, Self::Credentials) || !value.starts_with(b"\0");
                Some(if index == 0 && is_distinct { value } else { source.tagged(&value) })
            }),
        };
        let reads_tokens = || self.sources().iter().any(|source| matches!(source, Self::JwtClaim(_)));
        value.or_else(|| {
            let whole = if reads_tokens() { lengths_and_lines(fields, &AUTHORIZATION) } else { None };
            whole.map(Cow::Owned)
        })
    }

    /// The value of one source for this request. It is not empty.
    fn value_of<'a>(
        &self,
        credentials: &Credentials,
        parts: &'a Parts,
        fields: Fields<'a>,
        authorised: Option<&'a [u8]>,
    ) -> Option<Cow<'a, [u8]>> {
        let value = match self {
            Self::Credentials => credentials.of(fields),
            Self::Header(name) => lines(fields, name),
            Self::Cookie(name) => cookie(fields, name),
            Self::JwtClaim(claim) => {
                bearer::claim(&parts.headers, claim).map(|claim| Cow::Owned(claim.into_bytes()))
            }
            Self::Extract(extract) => extract(parts).map(Cow::Owned),
            Self::Authorised => authorised.map(Cow::Borrowed),
            Self::FirstOf(_) | Self::None => None,
        };
        value.filter(|value| !value.is_empty())
    }

    /// The value with the source's name, so that equal values of different sources are different callers.
    fn tagged(&self, value: &[u8]) -> Cow<'static, [u8]> {
        let mut bytes = SOURCE.to_vec();
        push(&mut bytes, self.to_string().as_bytes());
        push(&mut bytes, value);
        Cow::Owned(bytes)
    }
}

/// A single line unchanged, so that operators can look a caller up by what it sent. Several are taken with their
/// lengths, which begin with a zero byte, as no line does.
pub(super) fn lines<'a>(fields: Fields<'a>, name: &HeaderName) -> Option<Cow<'a, [u8]>> {
    let mut lines = fields.lines(name);
    match (lines.next(), lines.next()) {
        (None, _) => None,
        (Some(line), None) => Some(Cow::Borrowed(line.as_bytes())),
        _ => lengths_and_lines(fields, name).map(Cow::Owned),
    }
}

fn lengths_and_lines(fields: Fields<'_>, name: &HeaderName) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    fields.lines(name).filter(|line| !line.is_empty()).for_each(|line| push(&mut bytes, line.as_bytes()));
    (!bytes.is_empty()).then_some(bytes)
}

/// The value of a cookie, unchanged. If several have this name all count: the service may use any of them.
fn cookie<'a>(fields: Fields<'a>, name: &str) -> Option<Cow<'a, [u8]>> {
    let pairs = fields.lines(&COOKIE).flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
    let mut values = pairs.filter_map(|pair| {
        let at = pair.iter().position(|byte| *byte == b'=')?;
        let value = pair[at + 1..].trim_ascii();
        (pair[..at].trim_ascii() == name.as_bytes() && !value.is_empty()).then_some(value)
    });
    let first = values.next()?;
    let mut bytes = Vec::new();
    for further in values {
        if bytes.is_empty() {
            push(&mut bytes, first);
        }
        push(&mut bytes, further);
    }
    Some(if bytes.is_empty() { Cow::Borrowed(first) } else { Cow::Owned(bytes) })
}

impl FromStr for Principal {
    type Err = PrincipalError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            Some(("header", name)) => name.parse().map(Self::Header).map_err(|_| PrincipalError::HeaderName),
            // Cookie names and header names have the same characters (RFC 6265, 4.1.1).
            Some(("cookie", name)) if name.parse::<HeaderName>().is_ok() => Ok(Self::cookie(name)),
            Some(("cookie", _)) => Err(PrincipalError::CookieName),
            Some(("jwt", claim)) if claim.starts_with('/') => {
                claim.parse().map(Self::JwtClaim).map_err(PrincipalError::Claim)
            }
            Some(("jwt", claim)) if !claim.is_empty() => Ok(Self::jwt_claim(claim)),
            None if text == "credentials" => Ok(Self::Credentials),
            None if text == "none" => Ok(Self::None),
            _ => Err(PrincipalError::Unknown),
        }
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Credentials => f.write_str("credentials"),
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Cookie(name) => write!(f, "cookie:{name}"),
            Self::JwtClaim(claim) => match claim.names() {
                [name] if !name.starts_with('/') => write!(f, "jwt:{name}"),
                _ => write!(f, "jwt:{claim}"),
            },
            Self::Extract(_) => f.write_str("extract"),
            Self::Authorised => f.write_str("authorised"),
            Self::FirstOf(sources) => {
                let names: Vec<String> = sources.0.iter().map(ToString::to_string).collect();
                f.write_str(&names.join(", "))
            }
            Self::None => f.write_str("none"),
        }
    }
}

impl PartialEq for Principal {
    /// Functions are equal if they are the same instance.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Extract(own), Self::Extract(others)) => Arc::ptr_eq(own, others),
            (Self::FirstOf(own), Self::FirstOf(others)) => own.0 == others.0,
            _ => self.to_string() == other.to_string(),
        }
    }
}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Principal({self})")
    }
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&*self.0).finish()
    }
}

/// Why a text is not a principal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrincipalError {
    /// It begins with none of the known prefixes.
    #[error(
        "the principal is not one of `credentials`, `header:NAME`, `cookie:NAME`, `jwt:CLAIM` and `none`"
    )]
    Unknown,
    /// The text after `header:` is not a header name.
    #[error("the principal's `header:` is not followed by a header name")]
    HeaderName,
    /// The text after `cookie:` is not a cookie name.
    #[error("the principal's `cookie:` is not followed by a cookie name")]
    CookieName,
    /// The text after `jwt:` begins like a JSON pointer and is invalid.
    #[error("the principal's `jwt:` is not followed by a claim")]
    Claim(#[source] JsonPointerError),
}
