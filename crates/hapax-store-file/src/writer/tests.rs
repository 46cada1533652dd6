//! When the writer commits, and how it recovers: from a full disk, simulated by a size limit, and from a failed batch.

use std::path::Path;
use std::time::Duration;

use hapax_core::transition::{Answer, Command};
use hapax_core::{
    Claim, ClaimRequest, Class, Deleted, Fenced, Fingerprint, Format, Key, Lease, ManualClock, Nonce,
    OnLapse, Recorded, Scope, ScopedKey, State,
};

use tokio::sync::oneshot;

use super::commit::IndexFlush;
use super::*;
use crate::config::SyncMode;
use crate::leaf;
use crate::memtable::{AHEAD_BYTES_MAX, ENDED_MIN};
use crate::row::hash_of;

const SECOND: Duration = Duration::from_secs(1);
/// How many entries stay in the memtable.
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

fn claim(transaction: &mut WriteTransaction<'_>, name: &str) -> Lease {
    match transaction.apply_command(&Command::Claim(ask(name)), NewRecords::Accepted).unwrap() {
        Ok(Answer::Claim(Claim::Acquired(lease))) => lease,
        other => panic!("{name}: {other:?}"),
    }
}

fn finish(transaction: &mut WriteTransaction<'_>, name: &str) {
    let lease = claim(transaction, name);
    complete(transaction, lease);
}

fn complete(transaction: &mut WriteTransaction<'_>, lease: Lease) {
    let done = Recorded::new(Class::Success, Format::FUNCTION, "x".repeat(2_000));
    let command = Command::Complete { lease, done, retention: SECOND };
    transaction.apply_command(&command, NewRecords::Accepted).unwrap().unwrap();
}

/// A writer with a database of its own.
fn writer(dir: &Path, manual: &ManualClock) -> Writer {
    let path = dir.join("hapax.db");
    schema::create(&path).unwrap();
    let connection = schema::connect_writer(&path, SyncMode::Full).unwrap();
    let meta = Meta::read_sealed(&connection).unwrap();
    let clock = StoreClock::new(Some(Arc::new(manual.clone())), meta.seen);
    let mut options = std::fs::File::options();
    let file = options.create_new(true).read(true).write(true).open(dir.join("hapax.journal")).unwrap();
    let wal = Wal::new(dir.join("hapax.journal"), file, SyncMode::Full, meta.next_generation());
    let sqlite_log = SqliteLog::new(schema::log_path(&path), SyncMode::Full);
    let queue = Arc::new(Queue::new());
    let mut writer = Writer::new(connection, clock, Arc::default(), queue, wal, sqlite_log, meta);
    writer.memtable().keep_at_least(WAITING);
    writer
}

/// Makes so many claims that the next commit flushes index entries; returns the last one.
fn claim_many(writer: &mut Writer) -> Lease {
    let claims = |transaction: &mut WriteTransaction<'_>| {
        Ok(Vec::from_iter((0..2 * WAITING).map(|n| claim(transaction, &format!("open-{n}")))))
    };
    let mut leases = writer.apply_and_log(claims).unwrap();
    writer.write_records(Records::All).unwrap();
    writer.commit_with(IndexFlush::Skip).unwrap();
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
    writer
        .serve(vec![Job::Command(CommandJob { command: Command::Release { lease, answered: None }, reply })]);
    assert!(writer.commit().is_ok());
    answer.try_recv().unwrap()
}

#[test]
fn a_claim_can_be_completed_if_the_index_has_no_room() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), &ManualClock::new());
    let lease = claim_many(&mut writer);
    writer.limit_size(1).unwrap();
    assert_eq!(release(&mut writer, lease).unwrap(), Answer::Fenced(Fenced::Applied));
    assert_eq!(placed(&writer), 0, "the commit has skipped the flush");
}

#[test]
fn a_claim_can_be_completed_if_the_index_cannot_be_written() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), &ManualClock::new());
    let lease = claim_many(&mut writer);
    // Fails as a damaged page does.
    let refuse = "CREATE TRIGGER refuse BEFORE UPDATE ON leaf BEGIN SELECT RAISE(ABORT, 'damaged'); END";
    writer.connection.execute_batch(refuse).unwrap();
    assert_eq!(release(&mut writer, lease).unwrap(), Answer::Fenced(Fenced::Applied));
    assert_eq!(placed(&writer), 0, "the commit has skipped the flush");
}

#[test]
fn a_restart_without_room_sweeps_due_records_first() {
    const OPEN: usize = 2_000;
    let dir = tempfile::tempdir().unwrap();
    let manual = ManualClock::new();
    let mut writer = writer(dir.path(), &manual);
    let transaction = |transaction: &mut WriteTransaction<'_>| {
        (0..200).for_each(|n| finish(transaction, &format!("done-{n}")));
        for n in 0..OPEN {
            claim(transaction, &format!("open-{n}"));
        }
        Ok(())
    };
    writer.apply_and_log(transaction).unwrap();
    writer.write_records(Records::All).unwrap();
    writer.commit_with(IndexFlush::Skip).unwrap();
    manual.advance(2 * SECOND);
    // The state at a start.
    writer.memtable = Memtable::new(&writer.meta);
    // Not one page more.
    writer.limit_size(1).unwrap();
    let failure = writer.restart_claims().unwrap_err();
    assert_eq!(failure.classify().kind, StoreErrorKind::Full);
    writer.roll_back().unwrap();
    assert_eq!(writer.restart().unwrap(), OPEN);
    assert!(sweep::in_progress(&writer.connection).unwrap().is_empty());
}

/// Serves the first claim of a key.
fn serve_claim(writer: &mut Writer, name: &str) {
    let (reply, mut answer) = oneshot::channel();
    let command = Command::Claim(ask(name));
    writer.serve(vec![Job::Command(CommandJob { command, reply })]);
    assert!(matches!(answer.try_recv().unwrap(), Ok(Answer::Claim(Claim::Acquired(_)))));
}

fn committed(writer: &Writer) -> u64 {
    Meta::read_sealed(&writer.connection).unwrap().wal_generation.unsigned_abs()
}

#[test]
fn an_old_transaction_and_a_long_log_are_committed() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), &ManualClock::new());
    serve_claim(&mut writer, "a");
    assert!(writer.shared.is_uncommitted() && writer.open_since.is_some());
    writer.open_since = Instant::now().checked_sub(OPEN_MAX);
    serve_claim(&mut writer, "b");
    assert!(!writer.shared.is_uncommitted() && writer.open_since.is_none());
    assert_eq!((committed(&writer), writer.wal.generation().number), (1, 2));

    writer.wal.commit_after(1);
    serve_claim(&mut writer, "c");
    assert!(!writer.shared.is_uncommitted() && writer.open_since.is_none());
    assert_eq!((committed(&writer), writer.wal.generation().number), (2, 3));
}

#[test]
fn d_04_a_change_is_acknowledged_when_it_is_logged_and_before_it_is_in_the_database() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), &ManualClock::new());
    let rows = |writer: &Writer| -> i64 {
        writer.connection.query_row("SELECT count(*) FROM record", [], |row| row.get(0)).unwrap()
    };
    decide(&mut writer, |transaction| claim(transaction, "a"));
    assert!(writer.wal.length() > 0, "it is logged");
    assert_eq!(rows(&writer), 0);
    writer.write_records(Records::All).unwrap();
    assert_eq!(rows(&writer), 1);
}

#[test]
fn a_claim_that_ends_before_the_commit_is_written_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), &ManualClock::new());
    let lease = decide(&mut writer, |transaction| claim(transaction, "a"));
    writer.write_records(Records::Ended).unwrap();
    decide(&mut writer, |transaction| claim_again(transaction, "a"));
    decide(&mut writer, |transaction| complete(transaction, lease));
    assert_eq!(writer.connection.total_changes(), 0);
    writer.write_records(Records::Ended).unwrap();
    assert_eq!(writer.connection.total_changes(), 2, "a record and its outcome");
    assert!(!writer.memtable.has_unwritten());
    assert!(writer.commit().is_ok());
    assert_eq!(states(&writer), [row::state_number(State::Completed)]);
}

/// Serves completions with outcomes of these sizes, in two batches; returns the number of changed rows.
fn changes_after_serving(writer: &mut Writer, bytes: &[usize]) -> u64 {
    let leases = decide(writer, |transaction| {
        Vec::from_iter((0..bytes.len()).map(|n| claim(transaction, &format!("order-{n}"))))
    });
    let complete = |(lease, bytes): (Lease, &usize)| {
        let done = Recorded::new(Class::Success, Format::FUNCTION, "x".repeat(*bytes));
        let (reply, _) = oneshot::channel();
        Job::Command(CommandJob { command: Command::Complete { lease, done, retention: SECOND }, reply })
    };
    let mut jobs: Vec<Job> = leases.into_iter().zip(bytes).map(complete).collect();
    let later = jobs.split_off(jobs.len() / 2);
    writer.serve(jobs);
    writer.serve(later);
    writer.connection.total_changes()
}

#[test]
fn ended_records_are_written_when_they_are_many_or_large() {
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
fn a_lone_caller_does_not_wait_for_others() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), &ManualClock::new());
    let serve = |writer: &mut Writer, count: usize| {
        let asks = (0..count).map(|_| {
            let (reply, _) = oneshot::channel();
            Job::Command(CommandJob { command: Command::Claim(ask("a")), reply })
        });
        writer.serve(asks.collect());
    };
    serve(&mut writer, 2);
    assert_eq!(writer.gather_count(), None, "the default is not to wait");
    writer.gather = SECOND;
    for (count, gathered) in [(1, None), (2, Some(2)), (5, Some(5)), (1, None)] {
        serve(&mut writer, count);
        assert_eq!(writer.gather_count(), gathered, "after {count}");
    }
    let (reply, _) = oneshot::channel();
    writer.serve(vec![Job::Commit { reply }]);
    assert_eq!(writer.gather_count(), None, "the batch had no commands");
}

#[test]
fn an_open_claim_is_committed() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), &ManualClock::new());
    let lease = decide(&mut writer, |transaction| claim(transaction, "a"));
    assert!(writer.commit().is_ok());
    assert_eq!(states(&writer), [row::state_number(State::InProgress)]);
    decide(&mut writer, |transaction| complete(transaction, lease));
    assert!(writer.commit().is_ok());
    assert_eq!(states(&writer), [row::state_number(State::Completed)]);
}

/// The rows are in the order of creation, also for records that were never written.
#[test]
fn a_new_record_for_an_expired_one_has_a_row_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let manual = ManualClock::new();
    let mut writer = writer(dir.path(), &manual);
    decide(&mut writer, |transaction| finish(transaction, "a"));
    decide(&mut writer, |transaction| claim(transaction, "b"));
    manual.advance(2 * SECOND);
    decide(&mut writer, |transaction| claim(transaction, "a"));
    assert!(writer.commit().is_ok());
    let newest: [u8; 16] = writer
        .connection
        .query_row("SELECT hash FROM record ORDER BY rowid DESC LIMIT 1", [], |row| row.get(0))
        .unwrap();
    assert_eq!(newest, hash_of(&ask("a").key.id));
    assert_eq!(states(&writer).len(), 2);
}

#[test]
fn a_record_that_is_deleted_before_it_is_written_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), &ManualClock::new());
    let id = ask("a").key.id;
    let lease = decide(&mut writer, |transaction| claim(transaction, "a"));
    let delete = Command::Delete { id, nonce: lease.fence.nonce };
    decide(&mut writer, |transaction| complete(transaction, lease));
    let deleted = writer
        .apply_and_log(|transaction| transaction.apply_command(&delete, NewRecords::Accepted))
        .unwrap()
        .unwrap();
    assert!(matches!(deleted, Answer::Deleted(Deleted::Applied)), "{deleted:?}");
    assert!(writer.commit().is_ok());
    assert!(states(&writer).is_empty());
    assert!(writer.memtable().entries().rows_of(&hash_of(&id)).is_empty());
}

fn decide<T>(writer: &mut Writer, transaction: impl FnOnce(&mut WriteTransaction<'_>) -> T) -> T {
    writer.apply_and_log(|batch| Ok(transaction(batch))).unwrap()
}

fn states(writer: &Writer) -> Vec<i64> {
    let mut states = writer.connection.prepare("SELECT state FROM record").unwrap();
    states.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// A second claim of a key in progress.
fn claim_again(transaction: &mut WriteTransaction<'_>, name: &str) {
    let claim = transaction.apply_command(&Command::Claim(ask(name)), NewRecords::Accepted).unwrap();
    assert!(matches!(claim, Ok(Answer::Claim(Claim::Busy { .. }))), "{claim:?}");
}

#[test]
fn acknowledged_changes_survive_a_failed_batch() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), &ManualClock::new());
    serve_claim(&mut writer, "acknowledged");
    let failed = writer.attempt(|writer| {
        writer.apply_and_log(|transaction| {
            claim(transaction, "failed");
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
    // The failed claim has left nothing.
    serve_claim(&mut writer, "failed");
}

#[test]
fn acknowledged_changes_are_replayed_whatever_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), &ManualClock::new());
    for n in 0..50 {
        serve_claim(&mut writer, &format!("acknowledged-{n}"));
    }
    // Not one page more than the database had before them.
    writer.roll_back().unwrap();
    writer.limit_size(1).unwrap();
    writer.replay_wal().unwrap();
    assert!(writer.commit().is_ok());
    let rows: i64 = writer.connection.query_row("SELECT count(*) FROM record", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 50);
    // The limit holds for other changes.
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
    assert!(matches!(writer.commit(), Err(AttemptError::AlreadyStopped(RefuseReason::Stopped))));
}
