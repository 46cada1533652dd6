//! The errors of the admin listener and of the commands: each has a code, its causes and a hint.

use std::error::Error;
use std::fmt;

use hapax_core::{StoreError, StoreErrorKind};

/// An error code, which is also the name of its page in `docs/errors`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Code {
    /// An invalid key.
    KeyInvalid,
    /// An invalid value, or an unreadable file of a value.
    InputInvalid,
    /// An unknown option, or one with an invalid value.
    ConfigInvalid,
    /// An invalid store URL.
    StoreUrlInvalid,
    /// The store is in the memory of another process.
    StoreNotShared,
    /// The store does not exist.
    StoreMissing,
    /// The store is corrupt.
    StoreDamaged,
    /// A store operation failed.
    Store(StoreErrorKind),
    /// The record does not exist.
    RecordMissing,
    /// Several records match.
    RecordAmbiguous,
    /// The record exists and cannot be decoded.
    RecordUnreadable,
    /// The record has changed since it was read.
    RecordChanged,
    /// The record has an owner.
    InProgress,
    /// The record is not uncertain.
    NotUncertain,
    /// The change was not confirmed.
    NotConfirmed,
    /// Operations were still running at the end of a graceful shutdown.
    DrainIncomplete,
    /// A missing, wrong or unusable token.
    TokenInvalid,
    /// A change requested by a page of another site.
    RequestForged,
    /// A request for an unknown host name.
    HostUnknown,
    /// An unknown path.
    RouteMissing,
    /// A method that the path does not support.
    MethodRefused,
    /// The body exceeds the limit.
    TooLarge,
    /// Too many concurrent requests.
    Overloaded,
    /// The audit log could not be written, so nothing was done.
    AuditFailed,
    /// The admin listener is reachable from other machines, and no token is configured.
    AdminExposed,
    /// The address cannot be listened on.
    ListenFailed,
    /// The sidecar is unreachable, or the response is not that of a sidecar.
    AdminUnavailable,
    /// The journal does not exist.
    JournalMissing,
    /// Another process uses the journal.
    JournalInUse,
    /// The journal is corrupt or none.
    JournalDamaged,
    /// The journal cannot be read or written.
    JournalUnavailable,
    /// Calls in a journal have no final answer.
    CallsOpen,
    /// Another failure, such as one of output or of the setup of the process.
    Failed,
    /// The reader of stdout has closed it.
    OutputClosed,
}

impl Code {
    /// The name of the code and of its page.
    pub const fn name(self) -> &'static str {
        match self {
            Self::KeyInvalid => "key-invalid",
            Self::InputInvalid => "input-invalid",
            Self::ConfigInvalid => "config-invalid",
            Self::StoreUrlInvalid => "store-url-invalid",
            Self::StoreNotShared => "store-not-shared",
            Self::StoreMissing => "store-missing",
            Self::StoreDamaged => "store-damaged",
            Self::Store(kind) => store_code(kind),
            Self::RecordMissing => "record-missing",
            Self::RecordAmbiguous => "record-ambiguous",
            Self::RecordUnreadable => "record-unreadable",
            Self::RecordChanged => "record-changed",
            Self::InProgress => "in-progress",
            Self::NotUncertain => "not-uncertain",
            Self::NotConfirmed => "not-confirmed",
            Self::DrainIncomplete => "drain-incomplete",
            Self::TokenInvalid => "token-invalid",
            Self::RequestForged => "request-forged",
            Self::HostUnknown => "host-unknown",
            Self::RouteMissing => "route-missing",
            Self::MethodRefused => "method-refused",
            Self::TooLarge => "too-large",
            Self::Overloaded => "overloaded",
            Self::AuditFailed => "audit-failed",
            Self::AdminExposed => "admin-exposed",
            Self::ListenFailed => "listen-failed",
            Self::AdminUnavailable => "admin-unavailable",
            Self::JournalMissing => "journal-missing",
            Self::JournalInUse => "journal-in-use",
            Self::JournalDamaged => "journal-damaged",
            Self::JournalUnavailable => "journal-unavailable",
            Self::CallsOpen => "calls-open",
            Self::Failed | Self::OutputClosed => "failed",
        }
    }
}

/// The code of a store error.
const fn store_code(kind: StoreErrorKind) -> &'static str {
    match kind {
        StoreErrorKind::Unknown => "store-unknown",
        StoreErrorKind::Full => "store-full",
        StoreErrorKind::TooLarge => "store-too-large",
        StoreErrorKind::Stopped => "store-stopped",
        StoreErrorKind::Incompatible => "store-incompatible",
        StoreErrorKind::InUse => "store-in-use",
        StoreErrorKind::Invalid => "store-invalid",
        // Kinds that are added later count as unavailability.
        _ => "store-unavailable",
    }
}

/// An error of the admin listener or of a command.
#[derive(Debug)]
pub struct Failure {
    code: Code,
    message: String,
    hint: Option<String>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl Failure {
    /// An error with a code and a message.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, source: None }
    }

    /// A store operation failed. `doing` is the message, such as "cannot open the store".
    pub fn store(error: StoreError, doing: impl Into<String>) -> Self {
        let code = Code::Store(error.kind());
        let failure = Self::new(code, doing).because(error);
        match store_hint(code) {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The code.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The message, without causes and hint.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The hint.
    pub fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// All causes, from the nearest to the root. Repetitions of the nearer one are left out.
    pub fn causes(&self) -> impl Iterator<Item = String> {
        let first = self.source.as_deref().map(|source| source as &(dyn Error + 'static));
        let mut causes: Vec<String> =
            std::iter::successors(first, |error| (*error).source()).map(ToString::to_string).collect();
        causes.dedup();
        causes.into_iter()
    }

    /// The error as lines of text, with all causes and the hint.
    pub fn text(&self) -> String {
        let mut lines = vec![format!("error[{}]: {}", self.code.name(), self.message)];
        lines.extend(self.causes().map(|cause| format!("  because: {cause}")));
        lines.extend(self.hint.iter().map(|hint| format!("  what to do: {hint}")));
        lines.join("\n")
    }

    /// The error as a JSON document.
    pub fn document(&self) -> String {
        let causes: Vec<_> = self.causes().collect();
        serde_json::json!({
            "error": { "code": self.code.name(), "message": self.message, "causes": causes, "hint": self.hint }
        })
        .to_string()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

fn store_hint(code: Code) -> Option<&'static str> {
    let Code::Store(kind) = code else { return None };
    match kind {
        StoreErrorKind::InUse => Some(
            "wait for the process that has the store open, or stop it, then try again; \
             `records list`, `records show` and `check` work meanwhile",
        ),
        StoreErrorKind::Incompatible => {
            Some("check that the path is right, and use a version of hapax that supports this store")
        }
        StoreErrorKind::Full => Some("free some space, then try again; nothing was changed"),
        StoreErrorKind::Unknown => {
            Some("check with `records show` whether it was applied before trying again")
        }
        StoreErrorKind::Stopped => Some("fix the failure that the causes name, then try again"),
        StoreErrorKind::Unavailable => Some("fix what the causes name, then try again"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
