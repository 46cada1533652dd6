//! When a writer commits, and what it does where something fails: no room, for which a limit on the database stands, or a
//! batch that cannot be done.

use std::path::Path;
use std::time::Duration;

use hapax_core::transition::{Answer, Command};
use hapax_core::{
    Claim, ClaimRequest, Class, Deleted, Fenced, Fingerprint, Format, Key, Lease, ManualClock, Nonce,
    OnLapse, Recorded, Scope, ScopedKey, State,
};

use tokio::sync::oneshot;

use super::commit::Entries;
use super::*;
use crate::config::Sync;
use crate::leaf;
use crate::memtable::{AHEAD_BYTES_MAX, ENDED_MIN};
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
    complete(work, lease);
}

fn complete(work: &mut Work<'_>, lease: Lease) {
    let done = Recorded::new(Class::Success, Format::FUNCTION, "x".repeat(2_000));
    let command = Command::Complete { lease, done, retention: SECOND };
    work.step(&command, Room::Untried).unwrap().unwrap();
}

/// A writer with a database of its own.
fn writer(dir: &Path, manual: &ManualClock) -> Writer {
    let path = dir.join("hapax.db");
    schema::create(&path).unwrap();
    let connection = schema::connect_writer(&path, Sync::Full).unwrap();
    let meta = Meta::read_sealed(&connection).unwrap();
    let clock = StoreClock::new(Some(Arc::new(manual.clone())), meta.seen);
    let mut options = std::fs::File::options();
    let file = options.create_new(true).read(true).write(true).open(dir.join("hapax.journal")).unwrap();
    let journal = Journal::new(dir.join("hapax.journal"), file, Sync::Full, meta.next_generation());
    let log = Log::new(schema::log_path(&path), Sync::Full);
    let queue = Arc::new(Queue::new());
    let mut writer = Writer::new(connection, clock, Arc::default(), queue, journal, log, meta);
    writer.memtable().let_wait(WAITING);
    writer
}

/// Claims as much as makes the next commit write to the index; the last of it.
fn claim_many(writer: &mut Writer) -> Lease {
    let claims =
        |work: &mut Work<'_>| Ok(Vec::from_iter((0..2 * WAITING).map(|n| claim(work, &format!("open-{n}")))));
    let mut leases = writer.decide(claims).unwrap();
    writer.write_records(Records::All).unwrap();
    writer.commit_with(Entries::Waiting).unwrap();
    leases.pop().unwrap()
}

fn placed(writer: &Writer) -> usize {
    let mut count = 0;
    let mut next = Some(i64::MIN);
    while let Some(from) = next {
        next = leaf::each(&writer.connection, from, 10, |leaf| count += leaf.entries().len()).unwrap();
    }
    count
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
    let refuse = "CREATE TRIGGER refuse BEFORE UPDATE ON leaf BEGIN SELECT RAISE(ABORT, 'damaged'); END";
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
    writer.write_records(Records::All).unwrap();
    writer.commit_with(Entries::Waiting).unwrap();
    manual.advance(2 * SECOND);
    // As a start finds it.
    writer.memtable = Memtable::new(&writer.meta);
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
    Meta::read_sealed(&writer.connection).unwrap().journal.unsigned_abs()
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
    decide(&mut writer, |work| claim(work, "a"));
    assert!(writer.journal.length() > 0, "it is durable");
    assert_eq!(rows(&writer), 0);
    writer.write_records(Records::All).unwrap();
    assert_eq!(rows(&writer), 1);
}

#[test]
fn a_claim_that_ends_before_the_commit_is_written_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), &ManualClock::new());
    let lease = decide(&mut writer, |work| claim(work, "a"));
    writer.write_records(Records::Ended).unwrap();
    decide(&mut writer, |work| claim_again(work, "a"));
    decide(&mut writer, |work| complete(work, lease));
    assert_eq!(writer.connection.total_changes(), 0);
    writer.write_records(Records::Ended).unwrap();
    assert_eq!(writer.connection.total_changes(), 2, "a record and its outcome");
    assert!(!writer.memtable.has_unwritten());
    assert!(writer.commit().is_ok());
    assert_eq!(states(&writer), [row::state_number(State::Completed)]);
}

/// Has outcomes of so many bytes served, each half of them together, and tells how much of it the database has got.
fn changes_after_serving(writer: &mut Writer, bytes: &[usize]) -> u64 {
    let leases =
        decide(writer, |work| Vec::from_iter((0..bytes.len()).map(|n| claim(work, &format!("order-{n}")))));
    let complete = |(lease, bytes): (Lease, &usize)| {
        let done = Recorded::new(Class::Success, Format::FUNCTION, "x".repeat(*bytes));
        let (reply, _) = oneshot::channel();
        Job::Step(Step { command: Command::Complete { lease, done, retention: SECOND }, reply })
    };
    let mut jobs: Vec<Job> = leases.into_iter().zip(bytes).map(complete).collect();
    let later = jobs.split_off(jobs.len() / 2);
    writer.serve(jobs);
    writer.serve(later);
    writer.connection.total_changes()
}

#[test]
fn what_ended_is_written_when_there_is_much_of_it() {
    let quarter = AHEAD_BYTES_MAX as usize / 4;
    let (few, many) = ([10; ENDED_MIN - 1], [10; ENDED_MIN]);
    let (small, large) = ([quarter - 1_000; 4], [quarter; 4]);
    for (bytes, rows) in [(&few[..], 0), (&many, ENDED_MIN), (&small, 0), (&large, 4)] {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = writer(dir.path(), &ManualClock::new());
        let changes = changes_after_serving(&mut writer, bytes);
        assert_eq!(changes, 2 * rows as u64, "{} of {} bytes", bytes.len(), bytes[0]);
        assert!(writer.commit().is_ok());
        assert_eq!(states(&writer).len(), bytes.len());
    }
}

#[test]
fn a_lone_caller_is_not_made_to_wait_for_others() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), &ManualClock::new());
    let serve = |writer: &mut Writer, count: usize| {
        let asks = (0..count).map(|_| {
            let (reply, _) = oneshot::channel();
            Job::Step(Step { command: Command::Claim(ask("a")), reply })
        });
        writer.serve(asks.collect());
    };
    serve(&mut writer, 2);
    assert_eq!(writer.awaited(), None, "nobody is waited for unless that is asked for");
    writer.gather = SECOND;
    for (count, awaited) in [(1, None), (2, Some(2)), (5, Some(5)), (1, None)] {
        serve(&mut writer, count);
        assert_eq!(writer.awaited(), awaited, "after {count}");
    }
    let (reply, _) = oneshot::channel();
    writer.serve(vec![Job::Commit { reply }]);
    assert_eq!(writer.awaited(), None, "there was nobody who claims");
}

#[test]
fn a_claim_that_goes_on_is_committed_with_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), &ManualClock::new());
    let lease = decide(&mut writer, |work| claim(work, "a"));
    assert!(writer.commit().is_ok());
    assert_eq!(states(&writer), [row::state_number(State::InProgress)]);
    decide(&mut writer, |work| complete(work, lease));
    assert!(writer.commit().is_ok());
    assert_eq!(states(&writer), [row::state_number(State::Completed)]);
}

/// Whatever became of a record before it was written, it is in a row that is as old as its life.
#[test]
fn a_new_life_that_begins_before_the_commit_has_a_row_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let manual = ManualClock::new();
    let mut writer = writer(dir.path(), &manual);
    decide(&mut writer, |work| finish(work, "a"));
    decide(&mut writer, |work| claim(work, "b"));
    manual.advance(2 * SECOND);
    decide(&mut writer, |work| claim(work, "a"));
    assert!(writer.commit().is_ok());
    let newest: [u8; 16] = writer
        .connection
        .query_row("SELECT hash FROM record ORDER BY rowid DESC LIMIT 1", [], |row| row.get(0))
        .unwrap();
    assert_eq!(newest, hash_of(&ask("a").key.id));
    assert_eq!(states(&writer).len(), 2);
}

#[test]
fn what_is_deleted_before_it_is_written_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), &ManualClock::new());
    let id = ask("a").key.id;
    let lease = decide(&mut writer, |work| claim(work, "a"));
    let delete = Command::Delete { id, nonce: lease.fence.nonce };
    decide(&mut writer, |work| complete(work, lease));
    let deleted = writer.decide(|work| work.step(&delete, Room::Untried)).unwrap().unwrap();
    assert!(matches!(deleted, Answer::Deleted(Deleted::Applied)), "{deleted:?}");
    assert!(writer.commit().is_ok());
    assert!(states(&writer).is_empty());
    assert!(writer.memtable().entries().rows_of(&hash_of(&id)).is_empty());
}

fn decide<T>(writer: &mut Writer, work: impl FnOnce(&mut Work<'_>) -> T) -> T {
    writer.decide(|batch| Ok(work(batch))).unwrap()
}

fn states(writer: &Writer) -> Vec<i64> {
    let mut states = writer.connection.prepare("SELECT state FROM record").unwrap();
    states.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
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
    assert!(matches!(writer.commit(), Err(Stop::Earlier(Refusal::Stopped))));
}
