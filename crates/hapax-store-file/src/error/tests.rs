//! Every kind of failure of SQLite, and its error for callers.

use super::*;
use StoreErrorKind::{Full, Incompatible, Stopped, TooLarge, Unavailable, Unknown};

fn classify(phase: Phase, code: i32) -> (StoreErrorKind, bool) {
    let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
    let class = Failure::at(phase)(error).classify();
    (class.kind, class.fatal)
}

#[test]
fn a_failed_sync_or_write_stops_the_store() {
    for code in [
        ffi::SQLITE_IOERR,
        ffi::SQLITE_IOERR_FSYNC,
        ffi::SQLITE_IOERR_DIR_FSYNC,
        ffi::SQLITE_IOERR_WRITE,
        ffi::SQLITE_IOERR_READ,
        ffi::SQLITE_CANTOPEN,
    ] {
        assert_eq!(classify(Phase::Commit, code), (Unknown, true), "{code}");
        assert_eq!(classify(Phase::Wal, code), (Unknown, true), "{code}");
        // Before the commit nothing can have been applied.
        assert_eq!(classify(Phase::Work, code), (Stopped, true), "{code}");
        assert_eq!(classify(Phase::Begin, code), (Stopped, true), "{code}");
    }
}

#[test]
fn an_unexpected_error_while_committing_stops_the_store() {
    for code in [ffi::SQLITE_CONSTRAINT, ffi::SQLITE_INTERNAL, ffi::SQLITE_NOMEM] {
        assert_eq!(classify(Phase::Commit, code), (Unknown, true), "{code}");
    }
}

#[test]
fn a_full_disk_does_not_stop_the_store() {
    for phase in [Phase::Begin, Phase::Work, Phase::Wal, Phase::Commit] {
        assert_eq!(classify(phase, ffi::SQLITE_FULL), (Full, false));
        assert_eq!(classify(phase, ffi::SQLITE_BUSY), (Unavailable, false));
    }
    assert_eq!(classify(Phase::Work, ffi::SQLITE_TOOBIG), (TooLarge, false));
    for phase in [Phase::Begin, Phase::Work, Phase::Commit] {
        assert_eq!(classify(phase, ffi::SQLITE_CORRUPT), (Incompatible, false));
    }
}

#[test]
fn a_commit_that_only_the_log_has_stops_the_store() {
    for code in [ffi::SQLITE_IOERR_SHMSIZE, ffi::SQLITE_IOERR_SHMMAP] {
        assert_eq!(classify(Phase::Commit, code), (Unknown, true), "{code}");
        assert_eq!(classify(Phase::Work, code), (Unavailable, false), "{code}");
    }
}
