//! Errors of commands: exit codes, and the message on stderr.

use std::io;
use std::process::ExitCode;

pub(crate) use hapax_admin::failure::{Code, Failure};
use hapax_core::StoreErrorKind;

use crate::output::note;

/// Stdout or the terminal cannot be written.
pub(crate) fn output(error: io::Error) -> Failure {
    let code = if error.kind() == io::ErrorKind::BrokenPipe { Code::OutputClosed } else { Code::Failed };
    Failure::new(code, "cannot write the output").because(error)
}

/// The exit code of the process.
pub(crate) fn exit_code(failure: &Failure) -> ExitCode {
    ExitCode::from(status(failure.code()))
}

/// Writes the error with all causes to stderr.
pub(crate) fn report(failure: &Failure, json: bool) {
    if failure.code() != Code::OutputClosed {
        note(&if json { failure.document() } else { failure.text() });
    }
}

const fn status(code: Code) -> u8 {
    match code {
        Code::OutputClosed => 0,
        Code::Failed
        | Code::RecordUnreadable
        | Code::RequestForged
        | Code::HostUnknown
        | Code::RouteMissing
        | Code::MethodRefused
        | Code::AuditFailed
        | Code::ListenFailed => 1,
        Code::KeyInvalid
        | Code::InputInvalid
        | Code::ConfigInvalid
        | Code::StoreUrlInvalid
        | Code::StoreNotShared
        | Code::TokenInvalid
        | Code::AdminExposed
        | Code::Store(StoreErrorKind::Invalid) => 2,
        Code::RecordMissing => 3,
        Code::RecordAmbiguous
        | Code::RecordChanged
        | Code::InProgress
        | Code::NotUncertain
        | Code::NotConfirmed
        | Code::TooLarge
        | Code::Store(StoreErrorKind::TooLarge) => 4,
        Code::StoreMissing
        | Code::StoreDamaged
        | Code::AdminUnavailable
        | Code::Overloaded
        | Code::JournalMissing
        | Code::JournalInUse
        | Code::JournalDamaged
        | Code::JournalUnavailable
        | Code::Store(_) => 5,
        Code::DrainIncomplete => 6,
        Code::CallsOpen => 7,
    }
}

#[cfg(test)]
mod tests;
