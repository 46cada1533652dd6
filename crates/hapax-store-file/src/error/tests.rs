//! Every way in which the engine fails, and what its callers are told.

use super::*;
use StoreErrorKind::{Full, Incompatible, Stopped, TooLarge, Unavailable, Unknown};

fn judge(phase: Phase, code: i32) -> (StoreErrorKind, bool) {
    let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
    let judgement = Failure::at(phase)(error).judge();
    (judgement.kind, judgement.fatal)
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
        assert_eq!(judge(Phase::Commit, code), (Unknown, true), "{code}");
        assert_eq!(judge(Phase::Journal, code), (Unknown, true), "{code}");
        // Before the commit nothing can have been applied.
        assert_eq!(judge(Phase::Work, code), (Stopped, true), "{code}");
        assert_eq!(judge(Phase::Begin, code), (Stopped, true), "{code}");
    }
}

#[test]
fn what_cannot_be_judged_while_committing_stops_the_store() {
    for code in [ffi::SQLITE_CONSTRAINT, ffi::SQLITE_INTERNAL, ffi::SQLITE_NOMEM] {
        assert_eq!(judge(Phase::Commit, code), (Unknown, true), "{code}");
    }
}

#[test]
fn no_room_is_no_reason_to_stop() {
    for phase in [Phase::Begin, Phase::Work, Phase::Journal, Phase::Commit] {
        assert_eq!(judge(phase, ffi::SQLITE_FULL), (Full, false));
        assert_eq!(judge(phase, ffi::SQLITE_BUSY), (Unavailable, false));
    }
    assert_eq!(judge(Phase::Work, ffi::SQLITE_TOOBIG), (TooLarge, false));
    for phase in [Phase::Begin, Phase::Work, Phase::Commit] {
        assert_eq!(judge(phase, ffi::SQLITE_CORRUPT), (Incompatible, false));
    }
}

#[test]
fn a_commit_that_is_only_in_the_log_stops_the_store() {
    for code in [ffi::SQLITE_IOERR_SHMSIZE, ffi::SQLITE_IOERR_SHMMAP] {
        assert_eq!(judge(Phase::Commit, code), (Unknown, true), "{code}");
        assert_eq!(judge(Phase::Work, code), (Unavailable, false), "{code}");
    }
}
