//! Entries are found at every stage, are flushed in rounds, and return to the last commit with a rollback.

use std::collections::HashMap;
use std::time::Duration;

use hapax_core::{
    Class, Fence, Fingerprint, Format, Key, Nonce, Recorded, Scope, ScopedKey, Status, Timestamp, codec,
};

use super::flush::STRETCH;
use super::*;
use crate::index;
use crate::row::{self, RowStatements, StoredRow};
use crate::schema;

/// How many entries stay at least, and how many more than that are flushed.
const WAITING: usize = 1_024;
const MORE: usize = WAITING / STRETCH + 1;

/// A database and its memtable. Most records are nothing but their hash here.
struct Bench {
    connection: Connection,
    memtable: Memtable,
}

impl Bench {
    fn new() -> Self {
        let connection = Connection::open_in_memory().unwrap();
        schema::create_tables(&connection).unwrap();
        let meta = Meta::read_sealed(&connection).unwrap();
        let mut memtable = Memtable::new(&meta);
        memtable.keep_at_least(WAITING);
        Self { connection, memtable }
    }

    /// What is stored with a commit.
    fn note(&self) {
        let mut meta = Meta::read_sealed(&self.connection).unwrap();
        self.memtable.note(&mut meta);
        meta.write(&self.connection).unwrap();
    }

    fn commit(&mut self) {
        self.note();
        self.memtable.commit();
    }

    /// The process is killed, and the next one opens what was committed.
    fn crash(&mut self) -> rusqlite::Result<()> {
        let meta = Meta::read_sealed(&self.connection).unwrap();
        self.memtable = Memtable::new(&meta);
        self.memtable.keep_at_least(WAITING);
        self.memtable.flush_left_by_crash(&self.connection)?;
        self.commit();
        Ok(())
    }

    /// Every entry of the index in the database, in order.
    fn placed_entries(&self) -> Vec<IndexEntry> {
        let mut all = Vec::new();
        let mut next = Some(i64::MIN);
        while let Some(from) = next {
            next =
                leaf::each(&self.connection, from, 10, |leaf| all.extend_from_slice(leaf.entries())).unwrap();
        }
        all
    }

    /// Every record, by row.
    fn records(&self) -> BTreeSet<IndexEntry> {
        let mut all = BTreeSet::new();
        index::each_record_after(&self.connection, i64::MIN, |entry| all.extend([entry])).unwrap();
        all
    }

    fn add(&mut self, hash: Hash) -> i64 {
        let row = self.memtable.add(hash);
        let insert = "INSERT INTO record (rowid, hash, tail, state, due_ms, updated_ms, head) \
                      VALUES (?1, ?2, x'', 2, 0, 0, x'')";
        self.connection.prepare_cached(insert).unwrap().execute((row, hash)).unwrap();
        row
    }

    /// Adds as many as make `flush` write, hashes spread over all of their range.
    fn fill(&mut self) -> Vec<Hash> {
        let hashes: Vec<Hash> = (0..WAITING + MORE).map(spread).collect();
        for hash in &hashes {
            self.add(*hash);
        }
        self.memtable.flush(&self.connection).unwrap();
        hashes
    }

    fn remove(&mut self, hash: Hash, row: i64) {
        self.memtable.remove(&self.connection, hash, row).unwrap();
        self.connection.execute("DELETE FROM record WHERE rowid = ?1", [row]).unwrap();
    }

    fn execute(&self, statements: &str) {
        self.connection.execute_batch(statements).unwrap();
    }

    fn number(&self, query: &str) -> i64 {
        self.connection.query_row(query, [], |row| row.get(0)).unwrap()
    }

    fn placed(&self) -> usize {
        self.placed_entries().len()
    }

    fn waiting(&self) -> usize {
        self.memtable.entries.0.read().len()
    }

    /// Records that should be in the index and are not.
    fn missing(&self) -> usize {
        let indexed_row = self.number("SELECT indexed_row FROM meta");
        let placed = BTreeSet::from_iter(self.placed_entries());
        self.records().iter().filter(|entry| entry.row <= indexed_row && !placed.contains(entry)).count()
    }

    /// Entries of the index without a record.
    fn dangling(&self) -> usize {
        let records = self.records();
        self.placed_entries().iter().filter(|entry| !records.contains(entry)).count()
    }

    /// Records that are neither in the memtable nor in the index.
    fn lost(&self) -> usize {
        let placed = BTreeSet::from_iter(self.placed_entries());
        let entries = self.memtable.entries.0.read();
        self.records().iter().filter(|entry| !placed.contains(entry) && !entries.contains_key(entry)).count()
    }
}

fn spread(n: usize) -> Hash {
    (n as u128).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835).to_be_bytes()
}

#[test]
fn few_entries_stay_in_the_memtable() {
    let mut bench = Bench::new();
    let row = bench.add([7; 16]);
    let other = bench.add([7; 16]);
    bench.memtable.flush(&bench.connection).unwrap();
    bench.commit();
    assert_eq!(bench.memtable.entries().rows_of(&[7; 16]), [row, other]);
    assert_eq!(bench.memtable.entries().rows_of(&[8; 16]), Vec::<i64>::new());
    assert_eq!(bench.placed(), 0);
}

#[test]
fn many_entries_are_flushed_from_the_lowest_on() {
    let mut bench = Bench::new();
    bench.fill();
    assert_eq!(bench.waiting(), WAITING + MORE, "they leave with the commit");
    bench.commit();
    assert_eq!((bench.placed(), bench.waiting()), (MORE, WAITING));
    let lowest = Vec::from_iter(bench.records().into_iter().take(MORE));
    assert_eq!(bench.placed_entries(), lowest);
}

#[test]
fn a_rollback_returns_to_the_last_commit() {
    let mut bench = Bench::new();
    bench.fill();
    bench.commit();
    bench.connection.execute_batch("BEGIN").unwrap();
    let before = (bench.placed(), bench.waiting(), bench.memtable.progress.from);
    let row = bench.add([7; 16]);
    for n in 0..MORE {
        bench.add(spread(n + 1_000_000));
    }
    let last = *bench.memtable.entries.0.read().last_key_value().unwrap().0;
    let (hash, waiting) = (last.hash(), last.row);
    bench.memtable.remove(&bench.connection, hash, waiting).unwrap();
    bench.memtable.flush(&bench.connection).unwrap();
    bench.connection.execute_batch("ROLLBACK").unwrap();
    bench.memtable.roll_back();
    assert_eq!((bench.placed(), bench.waiting(), bench.memtable.progress.from), before);
    assert_eq!(bench.memtable.entries().rows_of(&hash), [waiting]);
    assert_eq!(bench.memtable.entries().rows_of(&[7; 16]), Vec::<i64>::new());
    assert!(bench.add([7; 16]) > row, "a row number is used once");
}

#[test]
fn every_record_is_found_and_every_row_up_to_indexed_row_is_in_the_index() {
    let mut bench = Bench::new();
    let mut rows: HashMap<Hash, i64> = bench.fill().into_iter().zip(1..).collect();
    bench.commit();
    let mut rounds = 0;
    let mut indexed_row = 0;
    // While a round goes over the hashes, half of what is new comes before it and half behind it.
    for n in 0..8 * WAITING / MORE {
        for m in 0..MORE {
            let hash = spread(1_000_000 + n * MORE + m);
            rows.insert(hash, bench.add(hash));
        }
        // Removes one that is not flushed and one that may be.
        for hash in [spread(1_000_000 + n * MORE), spread(n)] {
            bench.remove(hash, rows[&hash]);
        }
        bench.memtable.flush(&bench.connection).unwrap();
        bench.commit();
        let noted = bench.number("SELECT indexed_row FROM meta");
        if n % 64 == 0 || noted > indexed_row {
            assert_eq!(bench.missing(), 0, "after {n} transactions");
            assert_eq!(bench.lost(), 0, "after {n} transactions");
        }
        rounds += usize::from(noted > indexed_row);
        indexed_row = noted;
    }
    assert!(rounds >= 2, "{rounds} rounds ended");
    assert_eq!(bench.dangling(), 0);
}

#[test]
fn entries_left_by_a_crash_are_flushed_at_the_next_start() {
    let mut bench = Bench::new();
    for n in 0..10 {
        bench.add(spread(n));
    }
    bench.commit();
    assert_eq!((bench.placed(), bench.number("SELECT waiting FROM meta")), (0, 10));
    bench.crash().unwrap();
    assert_eq!((bench.placed(), bench.number("SELECT indexed_row FROM meta")), (10, 10));
    assert_eq!(bench.number("SELECT waiting FROM meta"), 0);
}

#[test]
fn a_missing_or_changed_record_after_a_crash_is_an_error() {
    for damage in [
        "DELETE FROM record WHERE rowid = 7",
        "UPDATE record SET rowid = 70 WHERE rowid = 7",
        "UPDATE record SET hash = zeroblob(16) WHERE rowid = 7",
        "UPDATE record SET hash = 'text' WHERE rowid = 7",
        "INSERT INTO record (rowid, hash, tail, state, due_ms, updated_ms, head) SELECT 11, hash, tail, 2, 0, 0, x'' \
         FROM record WHERE rowid = 7",
    ] {
        let mut bench = Bench::new();
        for n in 0..10 {
            bench.add(spread(n));
        }
        bench.commit();
        bench.execute(damage);
        assert!(bench.crash().is_err(), "{damage}");
    }
}

#[test]
fn flush_all_leaves_nothing_in_the_memtable() {
    let mut bench = Bench::new();
    bench.fill();
    bench.commit();
    bench.memtable.flush_all(&bench.connection).unwrap();
    bench.commit();
    assert_eq!((bench.placed(), bench.waiting(), bench.missing()), (WAITING + MORE, 0, 0));
    assert_eq!(bench.number("SELECT waiting FROM meta"), 0);
    bench.crash().unwrap();
}

#[test]
fn a_rebuilt_index_has_every_record() {
    let mut bench = Bench::new();
    bench.fill();
    bench.commit();
    let mut meta = Meta::read_sealed(&bench.connection).unwrap();
    index::rebuild(&bench.connection, &mut meta).unwrap();
    meta.write(&bench.connection).unwrap();
    assert_eq!((bench.placed(), bench.missing(), bench.dangling()), (WAITING + MORE, 0, 0));
    bench.crash().unwrap();
}

#[test]
fn row_numbers_of_removed_records_are_not_reused() {
    let mut bench = Bench::new();
    let rows = Vec::from_iter((0..10).map(|n| (spread(n), bench.add(spread(n)))));
    bench.commit();
    bench.crash().unwrap();
    for (hash, row) in rows {
        bench.remove(hash, row);
    }
    bench.commit();
    bench.crash().unwrap();
    assert_eq!(bench.memtable.add([7; 16]), 11);
}

#[test]
fn rollbacks_and_a_crash_hide_no_record() {
    const TRANSACTIONS: usize = 1_000;
    let mut bench = Bench::new();
    let mut kept: Vec<(Hash, i64)> = Vec::new();
    let mut indexed_rows = BTreeSet::new();
    // Pseudo-random and the same in every run.
    let mut dice = (0..).map(|n| u64::from_be_bytes(*spread(n + 7_000_000).first_chunk().unwrap()));
    let mut roll = |sides: usize| dice.next().unwrap() as usize % sides;
    for n in 0..TRANSACTIONS {
        bench.execute("BEGIN");
        let mut then = kept.clone();
        for m in 0..roll(6 * MORE) {
            let hash = spread(n * 6 * MORE + m);
            then.push((hash, bench.add(hash)));
        }
        for _ in 0..roll(24).min(then.len()) {
            // An old one, or one of this transaction.
            let at = if roll(2) == 0 { roll(then.len()) } else { then.len() - 1 };
            let (hash, row) = then.swap_remove(at);
            bench.remove(hash, row);
            if roll(2) == 0 {
                // The id is claimed again.
                then.push((hash, bench.add(hash)));
            }
        }
        if roll(4) > 0 {
            bench.memtable.flush(&bench.connection).unwrap();
        }
        if roll(5) == 0 {
            bench.execute("ROLLBACK");
            bench.memtable.roll_back();
        } else {
            bench.note();
            bench.execute("COMMIT");
            bench.memtable.commit();
            kept = then;
        }
        indexed_rows.insert(bench.number("SELECT indexed_row FROM meta"));
        if n % 100 == 99 {
            assert_eq!(bench.missing(), 0, "after {n} transactions");
            assert_eq!(bench.lost(), 0, "after {n} transactions");
            assert_eq!(bench.number("SELECT count(*) FROM record"), kept.len() as i64);
        }
        if n == TRANSACTIONS / 2 {
            bench.crash().unwrap();
            assert_eq!(bench.lost(), 0, "after a crash");
        }
    }
    assert!(indexed_rows.len() > 3, "{indexed_rows:?}");
    assert_eq!(bench.dangling(), 0);
}

fn record(name: &str, created_ms: u64, status: Status) -> Record {
    let at = Timestamp::from_millis(created_ms);
    Record {
        key: ScopedKey::new(Scope::new("POST /orders"), &Key::new(name).unwrap()),
        fingerprint: Fingerprint::empty(),
        fence: Fence { nonce: Nonce::from_bytes([1; 16]), attempt: 1 },
        takeovers: 0,
        created_at: at,
        updated_at: at,
        expires_at: at.after(Duration::from_secs(60)),
        status,
    }
}

fn claim(name: &str) -> Record {
    record(name, 1, Status::InProgress { lease_until: Timestamp::from_millis(1_000) })
}

fn completed(name: &str) -> Record {
    let recorded = Recorded::new(Class::Success, Format::FUNCTION, "x");
    record(name, 1, Status::Pinned { recorded })
}

impl Bench {
    /// Holds a record: over its row, if it has one.
    fn hold(&mut self, record: Record) {
        let (rowid, replaces) = match self.memtable.probe(&record.key.id) {
            Probe::Unwritten(before) => (before.rowid, before.replaces),
            Probe::Rows(rows) => match row::find(&self.connection, Some(rows), &record.key.id).unwrap() {
                StoredRow::Found(row) => (row.location.rowid(), Some(row)),
                _ => (self.memtable.add(hash_of(&record.key.id)), None),
            },
        };
        let encoded = codec::encode(&record);
        self.memtable.hold(Box::new(Unwritten { rowid, replaces, record, encoded }));
    }

    /// Writes records to the tables; their number.
    fn write(&mut self, records: Records) -> usize {
        let taken = self.memtable.take(records);
        let mut statements = RowStatements::new(&self.connection);
        for unwritten in &taken {
            let Unwritten { rowid, replaces, record, encoded } = &**unwritten;
            match replaces {
                None => statements.insert(*rowid, record, encoded).unwrap(),
                Some(row) => statements.replace(&mut self.memtable, row, record, encoded).unwrap(),
            }
        }
        taken.len()
    }

    /// The state of a record, as the writer finds it, and whether it is unwritten.
    fn state(&mut self, name: &str) -> Option<(State, bool)> {
        let id = claim(name).key.id;
        match self.memtable.probe(&id) {
            Probe::Unwritten(unwritten) => {
                let state = unwritten.record.state();
                self.memtable.hold(unwritten);
                Some((state, true))
            }
            Probe::Rows(rows) => match row::find(&self.connection, Some(rows), &id).unwrap() {
                StoredRow::Found(row) => Some((row.record.state(), false)),
                _ => None,
            },
        }
    }
}

#[test]
fn a_record_is_found_at_every_stage() {
    let mut bench = Bench::new();
    bench.hold(claim("a"));
    assert_eq!(bench.state("a"), Some((State::InProgress, true)));
    assert_eq!(bench.write(Records::Ended), 0, "a claim stays until it ends");
    bench.hold(completed("a"));
    assert_eq!(bench.state("a"), Some((State::Completed, true)));
    assert_eq!(bench.write(Records::Ended), 1);
    assert!(!bench.memtable.has_unwritten());
    for stage in ["written", "committed", "flushed", "indexed"] {
        assert_eq!(bench.state("a"), Some((State::Completed, false)), "{stage}");
        assert_eq!(bench.waiting(), usize::from(stage != "indexed"), "{stage}");
        match stage {
            "committed" => bench.memtable.flush_all(&bench.connection).unwrap(),
            _ => bench.commit(),
        }
    }
    assert_eq!((bench.placed(), bench.lost()), (1, 0));
}

#[test]
fn a_change_to_an_indexed_record_leaves_with_the_commit() {
    for is_committed in [true, false] {
        let mut bench = Bench::new();
        bench.hold(claim("a"));
        bench.write(Records::All);
        bench.memtable.flush_all(&bench.connection).unwrap();
        bench.commit();
        bench.execute("BEGIN");
        bench.hold(completed("a"));
        assert_eq!((bench.state("a"), bench.waiting()), (Some((State::Completed, true)), 1));
        bench.write(Records::All);
        assert_eq!(bench.state("a"), Some((State::Completed, false)));
        if is_committed {
            bench.commit();
        } else {
            bench.execute("ROLLBACK");
            bench.memtable.roll_back();
        }
        let state = if is_committed { State::Completed } else { State::InProgress };
        assert_eq!((bench.state("a"), bench.waiting()), (Some((state, false)), 0));
        assert_eq!((bench.missing(), bench.dangling(), bench.lost()), (0, 0, 0));
    }
}

#[test]
fn a_rollback_forgets_unwritten_records() {
    let mut bench = Bench::new();
    bench.hold(claim("committed"));
    bench.write(Records::All);
    bench.commit();
    bench.hold(completed("committed"));
    bench.hold(claim("new"));
    bench.memtable.roll_back();
    assert_eq!(bench.state("committed"), Some((State::InProgress, false)));
    assert_eq!(bench.state("new"), None);
    assert!(!bench.memtable.has_unwritten() && !bench.memtable.has_many_ended());
}

/// Another connection's view may be older than the commit.
#[test]
fn the_rows_of_two_lives_are_both_known_until_the_commit() {
    let mut bench = Bench::new();
    bench.hold(completed("a"));
    bench.write(Records::All);
    bench.commit();
    let again = record("a", 7, Status::InProgress { lease_until: Timestamp::from_millis(1_000) });
    let hash = hash_of(&again.key.id);
    bench.hold(again);
    bench.write(Records::All);
    assert_eq!(bench.memtable.entries().rows_of(&hash), [1, 2]);
    assert_eq!(bench.state("a"), Some((State::InProgress, false)));
    bench.commit();
    assert_eq!(bench.memtable.entries().rows_of(&hash), [2]);
}

#[test]
fn ended_records_are_counted_once() {
    let mut bench = Bench::new();
    for n in 0..ENDED_MIN - 1 {
        bench.hold(completed(&n.to_string()));
        bench.hold(completed(&n.to_string()));
    }
    assert!(!bench.memtable.has_many_ended());
    bench.hold(claim("last"));
    assert!(!bench.memtable.has_many_ended());
    bench.hold(completed("last"));
    assert!(bench.memtable.has_many_ended());
    assert_eq!(bench.write(Records::Ended), ENDED_MIN);
    assert!(!bench.memtable.has_many_ended());
}
