//! Every error the command can end with: its code, its exit code, its causes and what to do about it.

use std::error::Error;
use std::io;
use std::process::ExitCode;

use hapax_core::{StoreError, StoreErrorKind};

use crate::output::note;

/// What went wrong, by the name of its page in `docs/errors`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Code {
    /// What was given as a key is none.
    KeyInvalid,
    /// A value that was given makes no sense, or its file cannot be read.
    InputInvalid,
    /// An option is unknown, or what it says makes no sense.
    ConfigInvalid,
    /// What was given as a store is none.
    StoreUrlInvalid,
    /// The store lives inside another process.
    StoreNotShared,
    /// There is no store where one was expected.
    StoreMissing,
    /// Bytes of the store are not what was written.
    StoreDamaged,
    /// The store answered with an error.
    Store(StoreErrorKind),
    /// There is no such record.
    RecordMissing,
    /// Several records match.
    RecordAmbiguous,
    /// The record is there and cannot be read.
    RecordUnreadable,
    /// The record changed after it was looked at.
    RecordChanged,
    /// Somebody is working on the record.
    InProgress,
    /// There is nothing to decide.
    NotUncertain,
    /// Nobody said yes.
    NotConfirmed,
    /// The process was to end, and something that had begun had not.
    DrainIncomplete,
    /// A token that is missing, wrong or unfit.
    TokenInvalid,
    /// A change that another site's page asked for.
    RequestForged,
    /// A request for a name that is not ours.
    HostUnknown,
    /// There is nothing at that path.
    RouteMissing,
    /// That path does not take that method.
    MethodRefused,
    /// The body is larger than is taken.
    TooLarge,
    /// There is no room for more requests now.
    Overloaded,
    /// What was to be done could not be written down first.
    AuditFailed,
    /// The admin listener would be open to others without a token of its own.
    AdminExposed,
    /// An address that cannot be listened on.
    ListenFailed,
    /// A sidecar that cannot be reached, or does not answer as one.
    AdminUnavailable,
    /// The answer could not be printed, or the process could not be set up.
    Failed,
    /// Whoever read stdout has seen enough.
    OutputClosed,
}

impl Code {
    /// The name shown to people and the name of the page.
    pub(crate) const fn name(self) -> &'static str {
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
            Self::Failed | Self::OutputClosed => "failed",
        }
    }

    const fn exit(self) -> u8 {
        match self {
            Self::OutputClosed => 0,
            Self::Failed
            | Self::RecordUnreadable
            | Self::RequestForged
            | Self::HostUnknown
            | Self::RouteMissing
            | Self::MethodRefused
            | Self::AuditFailed
            | Self::ListenFailed => 1,
            Self::KeyInvalid
            | Self::InputInvalid
            | Self::ConfigInvalid
            | Self::StoreUrlInvalid
            | Self::StoreNotShared
            | Self::TokenInvalid
            | Self::AdminExposed
            | Self::Store(StoreErrorKind::Invalid) => 2,
            Self::RecordMissing => 3,
            Self::RecordAmbiguous
            | Self::RecordChanged
            | Self::InProgress
            | Self::NotUncertain
            | Self::NotConfirmed
            | Self::TooLarge
            | Self::Store(StoreErrorKind::TooLarge) => 4,
            Self::StoreMissing
            | Self::StoreDamaged
            | Self::AdminUnavailable
            | Self::Overloaded
            | Self::Store(_) => 5,
            Self::DrainIncomplete => 6,
        }
    }
}

/// The page about a store's error.
const fn store_code(kind: StoreErrorKind) -> &'static str {
    match kind {
        StoreErrorKind::Unknown => "store-unknown",
        StoreErrorKind::Full => "store-full",
        StoreErrorKind::TooLarge => "store-too-large",
        StoreErrorKind::Stopped => "store-stopped",
        StoreErrorKind::Incompatible => "store-incompatible",
        StoreErrorKind::InUse => "store-in-use",
        StoreErrorKind::Invalid => "store-invalid",
        // Kinds that are added later are no reason to say less than "it did not work".
        _ => "store-unavailable",
    }
}

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    code: Code,
    message: String,
    hint: Option<String>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl Failure {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, source: None }
    }

    /// A store call failed while `doing` something.
    pub(crate) fn store(error: StoreError, doing: impl Into<String>) -> Self {
        let code = Code::Store(error.kind());
        let failure = Self::new(code, doing).because(error);
        match store_hint(code) {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }

    /// Stdout or the terminal did not take what was written.
    pub(crate) fn output(error: io::Error) -> Self {
        let code = if error.kind() == io::ErrorKind::BrokenPipe { Code::OutputClosed } else { Code::Failed };
        Self::new(code, "cannot write the answer").because(error)
    }

    /// What to do about it.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What caused it.
    #[must_use]
    pub(crate) fn because(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    pub(crate) fn code(&self) -> Code {
        self.code
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code.exit())
    }

    /// Tells it on stderr, with every cause.
    pub(crate) fn report(&self, json: bool) {
        if self.code == Code::OutputClosed {
            return;
        }
        note(&if json { self.document() } else { self.text() });
    }

    /// What went wrong this time, for people.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// What to do about it, where that is known.
    pub(crate) fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Every cause, from the nearest to the first. One that only repeats the words of the nearer one is left out.
    pub(crate) fn causes(&self) -> impl Iterator<Item = String> {
        let first = self.source.as_deref().map(|source| source as &(dyn Error + 'static));
        let mut causes: Vec<String> =
            std::iter::successors(first, |error| (*error).source()).map(ToString::to_string).collect();
        causes.dedup();
        causes.into_iter()
    }

    pub(crate) fn text(&self) -> String {
        let mut lines = vec![format!("error[{}]: {}", self.code.name(), self.message)];
        lines.extend(self.causes().map(|cause| format!("  because: {cause}")));
        lines.extend(self.hint.iter().map(|hint| format!("  what to do: {hint}")));
        lines.join("\n")
    }

    fn document(&self) -> String {
        let causes: Vec<_> = self.causes().collect();
        serde_json::json!({
            "error": { "code": self.code.name(), "message": self.message, "causes": causes, "hint": self.hint }
        })
        .to_string()
    }
}

fn store_hint(code: Code) -> Option<&'static str> {
    let Code::Store(kind) = code else { return None };
    match kind {
        StoreErrorKind::InUse => Some(
            "let the process that holds the store end, or stop it, and try again; \
             `records list`, `records show` and `check` work meanwhile",
        ),
        StoreErrorKind::Incompatible => {
            Some("check that the path is right, and use a version of hapax that knows this store")
        }
        StoreErrorKind::Full => Some("free some space, then try again; nothing was changed"),
        StoreErrorKind::Unknown => {
            Some("look with `records show` whether it was applied before trying again")
        }
        StoreErrorKind::Stopped => Some("find the failure in the causes above, mend it, then try again"),
        StoreErrorKind::Unavailable => Some("mend what the causes above name, then try again"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
