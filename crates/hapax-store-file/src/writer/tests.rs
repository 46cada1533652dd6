//! When a writer commits, and what it does where something fails: no room, for which a limit on the database stands, or a
//! batch that cannot be done.

use std::path::Path;
use std::time::Duration;

use hapax_core::transition::{Answer, Command};
use hapax_core::{
    Claim, ClaimRequest, Class, Fenced, Fingerprint, Format, Key, Lease, ManualClock, Nonce, OnLapse,
    Recorded, Scope, ScopedKey,
};

use tokio::sync::oneshot;

use super::*;
use crate::config::Sync;
use crate::row::hash_of;

const SECOND: Duration = Duration::from_secs(1);
/// How many entries wait for the index.
const WAITING: usize = 2_000;

fn ask(name: &str) -> ClaimRequest {
    ClaimRequest {
        key: ScopedKey::new(Scope::new("POST /orders"), &Key::new(name).unwrap()),
        fingerprint: Fingerprint::empty(),
        nonce: Nonce::random(),
        lease: 60 * SECOND,
        on_lapse: OnLapse::Uncertain,
        attempts_max: 3,
        uncertain_retention: 3600 * SECOND,
    }
}

fn claim(work: &mut Work<'_>, name: &str) -> Lease {
    match work.step(&Command::Claim(ask(name)), Room::Untried).unwrap() {
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
    let clock =
        StoreClock::open(&connection, Some(Arc::new(manual.clone())), Timestamp::from_millis(0)).unwrap();
    let mut options = std::fs::File::options();
    let file = options.create_new(true).read(true).write(true).open(dir.join("hapax.journal")).unwrap();
    let generation = schema::next_generation(&connection).unwrap();
    let journal = Journal::new(dir.join("hapax.journal"), file, Sync::Full, generation);
    let log = Log::new(schema::log_path(&path), Sync::Full);
    let index = Index::open(&connection, WAITING).unwrap();
    Writer::new(connection, clock, Arc::default(), Arc::new(Queue::new()), journal, log, index).unwrap()
}

/// Claims as much as makes the next commit write to the index; the last of it.
fn claim_many(writer: &mut Writer) -> Lease {
    let claims =
        |work: &mut Work<'_>| Ok(Vec::from_iter((0..2 * WAITING).map(|n| claim(work, &format!("open-{n}")))));
    let mut leases = writer.decide(claims).unwrap();
    writer.carry_out().unwrap();
    writer.commit_with(Entries::Waiting).unwrap();
    leases.pop().unwrap()
}

fn placed(writer: &Writer) -> i64 {
    writer.connection.query_row("SELECT count(*) FROM place", [], |row| row.get(0)).unwrap()
}

fn release(writer: &mut Writer, lease: Lease) -> Result<Answer, StoreError> {
    let (reply, mut answer) = oneshot::channel();
    writer.serve(vec![Job::Step(Step { command: Command::Release { lease, answered: None }, reply })]);
    assert!(writer.commit().is_ok());
    answer.try_recv().unwrap()
}

#[test]
fn a_claim_can_be_finished_where_the_index_has_no_room_for_what_waits() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), &ManualClock::new());
    let lease = claim_many(&mut writer);
    writer.limit_size(1).unwrap();
    assert_eq!(release(&mut writer, lease).unwrap(), Answer::Fenced(Fenced::Applied));
    assert_eq!(placed(&writer), 0, "it was committed without");
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
    assert_eq!(placed(&writer), 0, "it was committed without");
}

#[test]
fn a_restart_without_room_sweeps_what_is_due_first() {
    const OPEN: usize = 2_000;
    let dir = tempfile::tempdir().unwrap();
    let manual = ManualClock::new();
    let mut writer = writer(dir.path(), &manual);
    let work = |work: &mut Work<'_>| {
        (0..200).for_each(|n| finish(work, &format!("done-{n}")));
        for n in 0..OPEN {
            claim(work, &format!("open-{n}"));
        }
        Ok(())
    };
    writer.decide(work).unwrap();
    writer.carry_out().unwrap();
    writer.commit_with(Entries::Waiting).unwrap();
    manual.advance(2 * SECOND);
    // Not one page more than it has.
    writer.limit_size(1).unwrap();
    let failure = writer.restart_claims().unwrap_err();
    assert_eq!(failure.judge().kind, StoreErrorKind::Full);
    writer.roll_back().unwrap();
    assert_eq!(writer.restart().unwrap(), OPEN);
    assert!(sweep::in_progress(&writer.connection).unwrap().is_empty());
}

/// Serves a claim that nobody has made before.
fn serve_claim(writer: &mut Writer, name: &str) {
    let (reply, mut answer) = oneshot::channel();
    let command = Command::Claim(ask(name));
    writer.serve(vec![Job::Step(Step { command, reply })]);
    assert!(matches!(answer.try_recv().unwrap(), Ok(Answer::Claim(Claim::Acquired(_)))));
}

fn committed(writer: &Writer) -> u64 {
    schema::journaled(&writer.connection).unwrap()
}

#[test]
fn what_was_answered_is_committed_when_it_is_old_or_long_enough() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), &ManualClock::new());
    serve_claim(&mut writer, "a");
    assert!(writer.shared.is_uncommitted() && writer.open.is_some());
    writer.open = Instant::now().checked_sub(OPEN_MAX);
    serve_claim(&mut writer, "b");
    assert!(!writer.shared.is_uncommitted() && writer.open.is_none());
    assert_eq!((committed(&writer), writer.journal.generation().number), (1, 2));

    writer.journal.commit_after(1);
    serve_claim(&mut writer, "c");
    assert!(!writer.shared.is_uncommitted() && writer.open.is_none());
    assert_eq!((committed(&writer), writer.journal.generation().number), (2, 3));
}

#[test]
fn d_04_an_answer_goes_when_it_is_durable_and_before_it_is_in_the_database() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), &ManualClock::new());
    let rows = |writer: &Writer| -> i64 {
        writer.connection.query_row("SELECT count(*) FROM record", [], |row| row.get(0)).unwrap()
    };
    writer.decide(|work| Ok(claim(work, "a"))).unwrap();
    assert!(writer.journal.length() > 0, "it is durable");
    assert_eq!(rows(&writer), 0);
    writer.carry_out().unwrap();
    assert_eq!(rows(&writer), 1);
    // One that is asked for twice is written before the second look at it.
    writer.decide(|work| Ok((claim(work, "b"), claim_again(work, "b")))).unwrap();
    assert_eq!(rows(&writer), 2);
}

/// A second claim of a key whose first is not finished.
fn claim_again(work: &mut Work<'_>, name: &str) {
    let claim = work.step(&Command::Claim(ask(name)), Room::Untried).unwrap();
    assert!(matches!(claim, Ok(Answer::Claim(Claim::Busy { .. }))), "{claim:?}");
}

#[test]
fn what_was_acknowledged_outlives_a_batch_that_fails() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), &ManualClock::new());
    serve_claim(&mut writer, "acknowledged");
    let failed = writer.attempt(|writer| {
        writer.decide(|work| {
            claim(work, "failed");
            Err::<(), _>(Failure::at(Phase::Work)(rusqlite::Error::InvalidQuery))
        })
    });
    assert!(failed.is_err() && !writer.shared.is_stopped());
    assert!(writer.commit().is_ok());
    let ids: Vec<Vec<u8>> = writer
        .connection
        .prepare("SELECT hash FROM record")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(ids, [hash_of(&ask("acknowledged").key.id)]);
    // What came after it is not taken for it.
    serve_claim(&mut writer, "failed");
}

#[test]
fn what_was_acknowledged_is_put_back_whatever_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), &ManualClock::new());
    for n in 0..50 {
        serve_claim(&mut writer, &format!("acknowledged-{n}"));
    }
    // From here on not one page more than the database had before them.
    writer.roll_back().unwrap();
    writer.limit_size(1).unwrap();
    writer.take_up().unwrap();
    assert!(writer.commit().is_ok());
    let rows: i64 = writer.connection.query_row("SELECT count(*) FROM record", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 50);
    // It holds for others.
    let free = schema::room(&writer.connection).unwrap();
    assert!(free < 1 << 16, "{free} bytes are free");
}

#[test]
fn a_store_that_stopped_commits_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), &ManualClock::new());
    serve_claim(&mut writer, "a");
    writer.roll_back().unwrap();
    stop(&writer.shared, &writer.queue);
    assert!(matches!(writer.commit(), Err(Stop::Earlier)));
}
