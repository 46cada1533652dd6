use std::sync::atomic::{AtomicBool, Ordering};

use hapax_core::transition::{Answer, Command};
use hapax_core::{Fence, Fenced, Lease, Nonce, RecordId, StoreError, StoreErrorKind};
use tokio::sync::oneshot;

use super::*;
use crate::writer::Step;

/// A renewal that was done, and where its answer comes out.
fn renewed() -> (Answered, oneshot::Receiver<Result<Answer, StoreError>>) {
    let fence = Fence { nonce: Nonce::random(), attempt: 1 };
    let lease = Lease { id: RecordId::from_bytes([7; 32]), fence, length: std::time::Duration::from_secs(1) };
    let (reply, answer) = oneshot::channel();
    let step = Step { command: Command::Renew(lease), reply };
    (Answered::new(step, Ok(Answer::Fenced(Fenced::Applied))), answer)
}

#[test]
fn d_04_an_answer_goes_when_its_commit_is_durable() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    std::fs::write(&path, "a commit").unwrap();
    let log = Log::new(path, Sync::Full, || panic!("nothing fails here")).unwrap();
    let (answered, answer) = renewed();
    log.begin().unwrap();
    assert!(log.disk().is_busy());
    log.bring_behind(vec![answered]);
    assert!(answer.blocking_recv().unwrap().is_ok());
    assert_eq!(log.disk().settle(), Ok(()));
    assert!(!log.disk().is_busy());
}

#[test]
fn d_04_a_commit_that_is_not_durable_stops_the_store_and_is_answered_as_unknown() {
    let dir = tempfile::tempdir().unwrap();
    let stopped = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&stopped);
    // There is no file to sync.
    let log =
        Log::new(dir.path().join("log"), Sync::Full, move || stop.store(true, Ordering::SeqCst)).unwrap();
    let (answered, answer) = renewed();
    log.begin().unwrap();
    log.bring_behind(vec![answered]);
    let error = answer.blocking_recv().unwrap().unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unknown);
    assert!(stopped.load(Ordering::SeqCst));
    assert_eq!(log.begin(), Err(SyncFailed), "nothing is committed after it");
    assert_eq!(log.disk().settle(), Err(SyncFailed), "nothing that was read is a fact");
}

#[test]
fn an_answer_goes_also_where_nothing_is_synced() {
    let log = Log::new("nowhere".into(), Sync::Off, || panic!("nothing fails here")).unwrap();
    let (answered, answer) = renewed();
    log.begin().unwrap();
    log.bring_behind(vec![answered]);
    assert!(answer.blocking_recv().unwrap().is_ok());
    assert_eq!(log.disk().settle(), Ok(()));
}

#[test]
fn a_commit_that_came_to_nothing_keeps_nobody_waiting() {
    let log = Log::new("nowhere".into(), Sync::Off, || ()).unwrap();
    log.begin().unwrap();
    log.forget();
    assert_eq!(log.disk().settle(), Ok(()));
}
