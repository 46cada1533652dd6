//! What a key is unique within: the caller, the method, the path and, where asked for, the host.
//!
//! It believes what it is told about the caller: whoever stands in front has checked it, or has not. Equal keys of
//! different callers end in different scopes, and nothing here can tell that another one exists (S-05).

mod bearer;
mod credentials;
mod principal;

use std::sync::Arc;

use hapax_core::Scope;
use http::header::{COOKIE, HOST};
use http::request::Parts;
use serde::{Deserialize, Serialize};

pub(crate) use credentials::Credentials;
pub use principal::{Principal, PrincipalError, Sources};

use super::path::{self, PathCase};

/// How scopes are made of requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScopeRules {
    pub(crate) namespace: Arc<str>,
    pub(crate) principal: Principal,
    pub(crate) credentials: Credentials,
    pub(crate) anonymous: Anonymous,
    pub(crate) endpoint: Endpoint,
    /// Whether hosts are kept apart.
    pub(crate) host: bool,
    /// Whether paths are kept apart by the case of their letters.
    pub(crate) path_case: PathCase,
}

impl ScopeRules {
    /// Whether a request can be refused because its caller is not known.
    pub(crate) fn may_refuse(&self) -> bool {
        self.anonymous == Anonymous::Refuse || self.principal.overlooks_cookies() || self.needs_name()
    }

    /// Whether the field with this name, in any case, decides who the caller is.
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
    /// They share one scope: one of them can meet another one's keys.
    #[default]
    Share,
    /// Their keys are refused.
    Refuse,
}

/// What one key on two endpoints is (S-01).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Endpoint {
    /// Two operations: method and path belong to the scope.
    #[default]
    Scope,
    /// A mistake, which is refused as a key reused for another request.
    Fingerprint,
}

/// Why a request without a principal is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PrincipalMissing {
    /// The route takes no key of an anonymous caller.
    Anonymous,
    /// The answer that let the caller in does not name it.
    Unnamed,
    /// The request has a cookie and no credential: the cookie may hold the session that tells its caller from others.
    OnlyCookie,
}

/// The operation of every request where endpoints are not kept apart.
const ANY_ENDPOINT: &str = "http";

/// What the request's key is unique within. `path` is the one that the client sent, and `authorised` is the name that
/// the caller was let in by, if it has one.
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
        // A caller that would be another one at its next attempt must not run under this one's name, nor under none.
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

/// Whether a record of this operation is that of a request, by the look of its name: a method and a path, with the host
/// between them where hosts are kept apart. For tools that show records; a function may have such a name too.
pub fn is_http_operation(operation: &str) -> bool {
    let mut words = operation.split(' ');
    let (first, last) = (words.next().unwrap_or_default(), words.next_back());
    let is_method = !first.is_empty() && first.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-');
    first == ANY_ENDPOINT || (is_method && last.is_some_and(|path| path.starts_with('/') || path == "*"))
}

/// The scope of the operation alone: words with a space between them. Neither methods nor paths have spaces, so no two
/// requests run together.
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

/// The authority in lower case, its port as written. Several `Host` lines are taken together: whichever of them the
/// handler believes, the scope is nobody else's.
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
                operation.push_str(&String::from_utf8_lossy(line.as_bytes()));
                separator = ",";
            }
        }
    }
    operation[start..].make_ascii_lowercase();
}

/// What people should know about these rules before the first request.
pub(crate) fn warnings(rules: &ScopeRules) -> Vec<&'static str> {
    let mut warnings = Vec::new();
    if rules.principal.is_credential(&rules.credentials) {
        warnings.push(
            "callers are told apart by a credential: whoever gets a new one between two attempts is somebody \
             else, and the retry runs again; name something stable with `principal` (S-02)",
        );
    }
    match (&rules.principal, rules.anonymous) {
        // Without a name there is no key.
        (Principal::Authorised, _) => {}
        (Principal::None, Anonymous::Share) => warnings
            .push("all callers share one scope: one of them can be given another one's answer (S-03)"),
        (_, Anonymous::Share) => warnings.push(
            "callers without a principal share one scope: one of them can be given another one's answer; refuse \
             them with `anonymous = \"refuse\"` (S-03)",
        ),
        (Principal::None, Anonymous::Refuse) => {
            warnings.push("nobody has a principal and callers without one are refused: so is every key (S-03)");
        }
        (_, Anonymous::Refuse) => {}
    }
    warnings
}

#[cfg(test)]
mod tests;
