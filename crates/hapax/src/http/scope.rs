//! The scope of a key: the caller, the method, the path and, if configured, the host.
//!
//! It trusts the caller's identity as given: verifying it is the task of a component in front. Equal keys of different
//! callers are in different scopes, and no response reveals that another caller exists (S-05).

mod bearer;
mod credentials;
mod principal;

use std::sync::Arc;

use hapax_core::Scope;
use http::Method;
use http::header::{COOKIE, HOST};
use http::request::Parts;
use serde::{Deserialize, Serialize};

pub(crate) use credentials::Credentials;
pub use principal::{Principal, PrincipalError, Sources};

use super::path::{self, PathCase};

/// How the scope of a request is determined.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScopeRules {
    pub(crate) namespace: Arc<str>,
    pub(crate) principal: Principal,
    pub(crate) credentials: Credentials,
    pub(crate) anonymous: Anonymous,
    pub(crate) endpoint: Endpoint,
    /// Whether the host is part of the scope.
    pub(crate) host: bool,
    /// How the case of letters in paths is compared.
    pub(crate) path_case: PathCase,
}

impl ScopeRules {
    /// Whether a request can be refused because its caller is unknown.
    pub(crate) fn may_refuse(&self) -> bool {
        self.anonymous == Anonymous::Refuse || self.principal.overlooks_cookies() || self.needs_name()
    }

    /// Whether the field with this name, in any case, affects who the caller is.
    pub(crate) fn reads(&self, field: &[u8]) -> bool {
        self.principal.reads(&self.credentials, field)
    }

    fn needs_name(&self) -> bool {
        matches!(self.principal, Principal::Authorised)
    }
}

/// What to do with callers that have no principal (S-03).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Anonymous {
    /// They share one scope: one of them can use the keys of another.
    #[default]
    Share,
    /// Their keys are refused.
    Refuse,
}

/// How one key on two endpoints is treated (S-01).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Endpoint {
    /// Two operations: method and path belong to the scope.
    #[default]
    Scope,
    /// As a mistake, which is refused as a key reused for another request.
    Fingerprint,
}

/// Why a request without a principal is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PrincipalMissing {
    /// The route accepts no keys of anonymous callers.
    Anonymous,
    /// The caller was authorised without a name.
    Unnamed,
    /// The request has a cookie and no credential: the cookie may hold the session that identifies its caller.
    OnlyCookie,
}

/// The operation of every request if endpoints are not part of the scope.
const ANY_ENDPOINT: &str = "http";

/// The scope of the request's key. `path` is the one that the client sent, and `authorised` is the name of the
/// authorised caller, if it has one.
pub(crate) fn scope_of(
    rules: &ScopeRules,
    parts: &Parts,
    path: &str,
    authorised: Option<&[u8]>,
) -> Result<Scope, PrincipalMissing> {
    let mut scope = operation(rules, parts, &path::compared(path, rules.path_case));
    if !rules.namespace.is_empty() {
        scope = scope.in_namespace(rules.namespace.clone());
    }
    match (rules.principal.of(&rules.credentials, parts, authorised), rules.anonymous) {
        (Some(principal), _) => Ok(scope.principal(principal)),
        // A caller that would have another name at its next attempt must neither run under this name nor without one.
        (None, _) if rules.needs_name() => Err(PrincipalMissing::Unnamed),
        (None, _) if rules.principal.overlooks_cookies() && has_cookie(parts) => {
            Err(PrincipalMissing::OnlyCookie)
        }
        (None, Anonymous::Share) => Ok(scope),
        (None, Anonymous::Refuse) => Err(PrincipalMissing::Anonymous),
    }
}

fn has_cookie(parts: &Parts) -> bool {
    parts.headers.get_all(COOKIE).iter().any(|line| !line.is_empty())
}

/// Whether a record of this operation belongs to an HTTP request, judging by its name: a method and a path, with the
/// host between them if hosts are part of the scope. For tools that show records; a function may have such a name too.
pub fn is_http_operation(operation: &str) -> bool {
    let mut words = operation.split(' ');
    let (first, last) = (words.next().unwrap_or_default(), words.next_back());
    let is_method = !first.is_empty() && first.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-');
    first == ANY_ENDPOINT || (is_method && last.is_some_and(|path| path.starts_with('/') || path == "*"))
}

/// The word that marks the operation of a derived key. Not a host: what follows the colon is not a port.
pub const DERIVED_KEY_MARK: &str = "key:derived";

/// The scope of derived keys beside `scope`: apart from the keys that callers choose, and recognisable in records (K-11).
///
/// The endpoint is always part of it: no caller has chosen the same key for two endpoints.
pub(crate) fn of_derived(scope: &Scope, method: &Method, path: &str) -> Scope {
    let operation = scope.operation();
    let (first, rest) = operation.split_once(' ').unwrap_or((operation, ""));
    let marked = if first == ANY_ENDPOINT {
        format!("{first} {DERIVED_KEY_MARK} {rest} {method} {path}")
    } else {
        format!("{first} {DERIVED_KEY_MARK} {rest}")
    };
    Scope::from_parts(scope.namespace(), scope.principal_hash().copied(), &marked)
}

/// The scope of the operation alone: words separated by a space. Neither methods nor paths contain spaces, so no two
/// requests have the same text.
fn operation(rules: &ScopeRules, parts: &Parts, path: &str) -> Scope {
    if rules.endpoint == Endpoint::Fingerprint && !rules.host {
        return Scope::new(ANY_ENDPOINT);
    }
    let method = match rules.endpoint {
        Endpoint::Scope => parts.method.as_str(),
        Endpoint::Fingerprint => ANY_ENDPOINT,
    };
    if !rules.host {
        return Scope::of_words([method, " ", path]);
    }
    let mut operation = String::from(method);
    operation.push(' ');
    push_host(&mut operation, parts);
    if rules.endpoint == Endpoint::Scope {
        operation.push(' ');
        operation.push_str(path);
    }
    Scope::new(operation)
}

/// The authority in lower case, with the port as written. Several `Host` lines are combined: the scope is unique for
/// whichever of them the handler uses.
fn push_host(operation: &mut String, parts: &Parts) {
    let start = operation.len();
    match parts.uri.authority() {
        Some(authority) => {
            let host_and_port = authority.as_str().rsplit('@').next().unwrap_or_default();
            operation.push_str(host_and_port);
        }
        None => {
            let mut separator = "";
            for line in parts.headers.get_all(HOST) {
                operation.push_str(separator);
                // Spaces separate the words of an operation.
                operation.push_str(&String::from_utf8_lossy(line.as_bytes()).replace(' ', "_"));
                separator = ",";
            }
        }
    }
    operation[start..].make_ascii_lowercase();
}

/// Warnings about these rules for operators.
pub(crate) fn warnings(rules: &ScopeRules) -> Vec<&'static str> {
    let mut warnings = Vec::new();
    if rules.principal.is_credential(&rules.credentials) {
        warnings.push(
            "callers are identified by a credential: one with a new credential is another caller, and its retry \
             runs again; choose a stable identity with `principal` (S-02)",
        );
    }
    match (&rules.principal, rules.anonymous) {
        // A caller without a name is refused.
        (Principal::Authorised, _) => {}
        (Principal::None, Anonymous::Share) => warnings
            .push("all callers share one scope: one of them can get the response of another (S-03)"),
        (_, Anonymous::Share) => warnings.push(
            "callers without a principal share one scope: one of them can get the response of another; refuse \
             them with `anonymous = \"refuse\"` (S-03)",
        ),
        (Principal::None, Anonymous::Refuse) => {
            warnings.push("no caller has a principal, and callers without one are refused: every key is refused (S-03)");
        }
        (_, Anonymous::Refuse) => {}
    }
    warnings
}

#[cfg(test)]
mod tests;
