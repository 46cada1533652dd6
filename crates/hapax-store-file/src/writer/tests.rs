//! What a writer does where the disk has no room, which a limit on the database stands for.

use std::path::Path;
use std::time::Duration;

use hapax_core::{
    ClaimRequest, Class, Fenced, Fingerprint, Format, Key, Lease, ManualClock, Nonce, OnLapse, Recorded,
    Scope, ScopedKey,
};

use super::*;
use crate::config::Sync;

const SECOND: Duration = Duration::from_secs(1);
/// How many entries wait for the index.
const WAITING: usize = 2_000;

fn claim(work: &mut Work<'_>, name: &str) -> Lease {
    let ask = ClaimRequest {
        key: ScopedKey::new(Scope::new("POST /orders"), &Key::new(name).unwrap()),
        fingerprint: Fingerprint::empty(),
        nonce: Nonce::random(),
        lease: 60 * SECOND,
        on_lapse: OnLapse::Uncertain,
        attempts_max: 3,
        uncertain_retention: 3600 * SECOND,
    };
    match work.step(&Command::Claim(ask), Room::Untried).unwrap() {
        Ok(Answer::Claim(Claim::Acquired(lease))) => lease,
        other => panic!("{name}: {other:?}"),
    }
}

fn finish(work: &mut Work<'_>, name: &str) {
    let lease = claim(work, name);
    let done = Recorded::new(Class::Success, Format::FUNCTION, "x".repeat(2_000));
    let command = Command::Complete { lease, done, retention: SECOND };
    work.step(&command, Room::Untried).unwrap().unwrap();
}

/// A writer with a database of its own.
fn writer(dir: &Path, manual: &ManualClock) -> Writer {
    let path = dir.join("hapax.db");
    schema::create(&path).unwrap();
    let connection = schema::connect_writer(&path, Sync::Full).unwrap();
    let clock = StoreClock::open(&connection, Some(Arc::new(manual.clone()))).unwrap();
    let log = Log::new(schema::log_path(&path), Sync::Full, || {}).unwrap();
    let index = Index::open(&connection, WAITING).unwrap();
    Writer::new(connection, clock, Arc::default(), Arc::new(Queue::new()), log, index).unwrap()
}

/// Claims as much as makes the next transaction write to the index; the last of it.
fn claim_many(writer: &mut Writer) -> Lease {
    let claims =
        |work: &mut Work<'_>| Ok(Vec::from_iter((0..2 * WAITING).map(|n| claim(work, &format!("open-{n}")))));
    writer.transact_durably(claims).unwrap().pop().unwrap()
}

fn release(writer: &mut Writer, lease: Lease) -> Result<Answer, StoreError> {
    let (reply, mut answer) = oneshot::channel();
    writer.serve(vec![Job::Step(Step { command: Command::Release { lease, answered: None }, reply })]);
    writer.log.disk().settle().unwrap();
    answer.try_recv().unwrap()
}

#[test]
fn a_claim_can_be_finished_where_the_index_has_no_room_for_what_waits() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), &ManualClock::new());
    let lease = claim_many(&mut writer);
    writer.limit_size(1).unwrap();
    assert_eq!(release(&mut writer, lease).unwrap(), Answer::Fenced(Fenced::Applied));
}

#[test]
fn a_claim_can_be_finished_where_the_index_cannot_be_written() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), &ManualClock::new());
    let lease = claim_many(&mut writer);
    // As a damaged page of it does.
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON place BEGIN SELECT RAISE(ABORT, 'damaged'); END";
    writer.connection.execute_batch(refuse).unwrap();
    assert_eq!(release(&mut writer, lease).unwrap(), Answer::Fenced(Fenced::Applied));
}

#[test]
fn a_restart_without_room_sweeps_what_is_due_first() {
    const OPEN: usize = 2_000;
    let dir = tempfile::tempdir().unwrap();
    let manual = ManualClock::new();
    let mut writer = writer(dir.path(), &manual);
    writer
        .transact_durably(|work| {
            (0..200).for_each(|n| finish(work, &format!("done-{n}")));
            for n in 0..OPEN {
                claim(work, &format!("open-{n}"));
            }
            Ok(())
        })
        .unwrap();
    manual.advance(2 * SECOND);
    // Not one page more than it has.
    writer.limit_size(1).unwrap();
    let failure = writer.restart_claims().unwrap_err();
    assert_eq!(failure.judge().kind, StoreErrorKind::Full);
    assert_eq!(writer.restart().unwrap(), OPEN);
    assert!(sweep::in_progress(&writer.connection).unwrap().is_empty());
}
