//! What waits for the index is found, is written in rounds, and comes back when a transaction does not hold.

use std::collections::HashMap;
use std::time::Instant;

use super::*;
use crate::queue::{Queue, Taken};

/// How many entries wait at least, and how many more than that are written.
const WAITING: usize = 1_024;
const MORE: usize = WAITING / STRETCH + 1;

/// A database and the index of it; records are nothing but their hash here.
struct Bench {
    connection: Connection,
    index: Index,
}

impl Bench {
    fn new() -> Self {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(include_str!("../schema.sql")).unwrap();
        let index = Index::open(&connection, WAITING).unwrap();
        Self { connection, index }
    }

    fn add(&mut self, hash: Hash) -> i64 {
        let row = self.index.add(hash);
        let insert = "INSERT INTO record (rowid, hash, tail, state, due_ms, updated_ms, head) \
                      VALUES (?1, ?2, x'', 2, 0, 0, x'')";
        self.connection.prepare_cached(insert).unwrap().execute((row, hash)).unwrap();
        row
    }

    /// Adds as many as make `place` write, hashes spread over all of their range.
    fn fill(&mut self) -> Vec<Hash> {
        let hashes: Vec<Hash> = (0..WAITING + MORE).map(spread).collect();
        for hash in &hashes {
            self.add(*hash);
        }
        self.index.place(&self.connection).unwrap();
        hashes
    }

    fn remove(&mut self, hash: Hash, row: i64) {
        self.index.remove(&self.connection, hash, row).unwrap();
        self.connection.execute("DELETE FROM record WHERE rowid = ?1", [row]).unwrap();
    }

    fn execute(&self, statements: &str) {
        self.connection.execute_batch(statements).unwrap();
    }

    fn number(&self, query: &str) -> i64 {
        self.connection.query_row(query, [], |row| row.get(0)).unwrap()
    }

    fn placed(&self) -> i64 {
        self.number("SELECT count(*) FROM place")
    }

    fn waiting(&self) -> usize {
        self.index.recent().entries.read().len()
    }

    /// Records that the index should lead to and does not.
    fn missing(&self) -> i64 {
        self.number(
            "SELECT count(*) FROM record r WHERE rowid <= (SELECT indexed_row FROM meta) \
             AND NOT EXISTS (SELECT 1 FROM place p WHERE p.hash = r.hash AND p.row = r.rowid)",
        )
    }

    /// Entries of the index that lead to no record of theirs.
    fn dangling(&self) -> i64 {
        self.number(
            "SELECT count(*) FROM place p \
             WHERE NOT EXISTS (SELECT 1 FROM record r WHERE r.rowid = p.row AND r.hash = p.hash)",
        )
    }

    /// Records that neither the memory nor the index leads to.
    fn lost(&self) -> usize {
        let mut statement = self.connection.prepare("SELECT hash, rowid FROM record").unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let is_lost = |(hash, row): &(Hash, i64)| {
            let placed = "SELECT count(*) FROM place WHERE hash = ?1 AND row = ?2";
            let mut statement = self.connection.prepare_cached(placed).unwrap();
            let placed: i64 = statement.query_row((hash, row), |row| row.get(0)).unwrap();
            placed == 0 && !self.index.recent().rows_of(hash).contains(row)
        };
        rows.map(Result::unwrap).filter(is_lost).count()
    }
}

fn spread(n: usize) -> Hash {
    (n as u128).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835).to_be_bytes()
}

#[test]
fn a_few_entries_wait_in_memory() {
    let mut bench = Bench::new();
    let row = bench.add([7; 16]);
    let other = bench.add([7; 16]);
    bench.index.place(&bench.connection).unwrap();
    bench.index.keep();
    assert_eq!(bench.index.recent().rows_of(&[7; 16]), [row, other]);
    assert_eq!(bench.index.recent().rows_of(&[8; 16]), Vec::<i64>::new());
    assert_eq!(bench.placed(), 0);
}

#[test]
fn many_entries_are_written_from_the_lowest_hash_on() {
    let mut bench = Bench::new();
    let mut hashes = bench.fill();
    assert_eq!(bench.waiting(), WAITING + MORE, "they leave the memory when the transaction holds");
    bench.index.keep();
    assert_eq!((bench.placed(), bench.waiting()), (MORE as i64, WAITING));
    hashes.sort_unstable();
    let highest: Hash =
        bench.connection.query_row("SELECT max(hash) FROM place", [], |row| row.get(0)).unwrap();
    assert_eq!(highest, hashes[MORE - 1]);
}

#[test]
fn what_a_transaction_did_is_undone_with_it() {
    let mut bench = Bench::new();
    bench.fill();
    bench.index.keep();
    bench.connection.execute_batch("BEGIN").unwrap();
    let before = (bench.placed(), bench.waiting(), bench.index.round.from);
    let row = bench.add([7; 16]);
    for n in 0..MORE {
        bench.add(spread(n + 1_000_000));
    }
    let (hash, waiting) = *bench.index.recent().entries.read().last().unwrap();
    bench.index.remove(&bench.connection, hash, waiting).unwrap();
    bench.index.place(&bench.connection).unwrap();
    bench.connection.execute_batch("ROLLBACK").unwrap();
    bench.index.undo();
    assert_eq!((bench.placed(), bench.waiting(), bench.index.round.from), before);
    assert_eq!(bench.index.recent().rows_of(&hash), [waiting]);
    assert_eq!(bench.index.recent().rows_of(&[7; 16]), Vec::<i64>::new());
    assert!(bench.add([7; 16]) > row, "a number of a row comes once");
}

#[test]
fn whatever_happens_every_record_is_found_and_every_row_up_to_the_mark_is_in_the_index() {
    let mut bench = Bench::new();
    let mut rows: HashMap<Hash, i64> = bench.fill().into_iter().zip(1..).collect();
    bench.index.keep();
    let mut marks = 0;
    let mut mark = 0;
    // While a round goes over the hashes, half of what is new comes before it and half behind it.
    for n in 0..8 * WAITING / MORE {
        for m in 0..MORE {
            let hash = spread(1_000_000 + n * MORE + m);
            rows.insert(hash, bench.add(hash));
        }
        // One that waits and one that may be written are removed.
        for hash in [spread(1_000_000 + n * MORE), spread(n)] {
            bench.remove(hash, rows[&hash]);
        }
        bench.index.place(&bench.connection).unwrap();
        bench.index.keep();
        let noted = bench.number("SELECT indexed_row FROM meta");
        if n % 64 == 0 || noted > mark {
            assert_eq!(bench.missing(), 0, "after {n} transactions");
            assert_eq!(bench.lost(), 0, "after {n} transactions");
        }
        marks += usize::from(noted > mark);
        mark = noted;
    }
    assert!(marks >= 2, "{marks} rounds ended");
    assert_eq!(bench.dangling(), 0);
}

#[test]
fn what_a_crash_left_waiting_is_written_when_the_store_is_opened() {
    let mut bench = Bench::new();
    for n in 0..10 {
        bench.add(spread(n));
    }
    assert!(place_all(&bench.connection).unwrap());
    assert_eq!((bench.placed(), bench.number("SELECT indexed_row FROM meta")), (10, 10));
    assert!(!place_all(&bench.connection).unwrap(), "nothing is left");
}

#[test]
fn rows_of_removed_records_do_not_come_again() {
    let mut bench = Bench::new();
    for n in 0..10 {
        bench.add(spread(n));
    }
    place_all(&bench.connection).unwrap();
    bench.connection.execute_batch("DELETE FROM record; DELETE FROM place").unwrap();
    let mut index = Index::open(&bench.connection, WAITING).unwrap();
    assert_eq!(index.add([7; 16]), 11);
}

#[test]
fn what_is_rolled_back_and_what_a_crash_forgets_hides_no_record() {
    const TRANSACTIONS: usize = 1_000;
    let mut bench = Bench::new();
    let mut kept: Vec<Entry> = Vec::new();
    let mut marks = BTreeSet::new();
    // The same each time; only that it is without a pattern matters.
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
                // It begins a new life.
                then.push((hash, bench.add(hash)));
            }
        }
        if roll(4) > 0 {
            bench.index.place(&bench.connection).unwrap();
        }
        if roll(5) == 0 {
            bench.execute("ROLLBACK");
            bench.index.undo();
        } else {
            bench.execute("COMMIT");
            bench.index.keep();
            kept = then;
        }
        marks.insert(bench.number("SELECT indexed_row FROM meta"));
        if n % 100 == 99 {
            assert_eq!(bench.missing(), 0, "after {n} transactions");
            assert_eq!(bench.lost(), 0, "after {n} transactions");
            assert_eq!(bench.number("SELECT count(*) FROM record"), kept.len() as i64);
        }
        if n == TRANSACTIONS / 2 {
            bench.index = Index::open(&bench.connection, WAITING).unwrap();
            place_all(&bench.connection).unwrap();
            assert_eq!(bench.lost(), 0, "after a crash");
        }
    }
    assert!(marks.len() > 3, "{marks:?}");
    assert_eq!(bench.dangling(), 0);
}

#[test]
fn the_filter_knows_what_is_written_and_starts_again_when_that_holds() {
    let mut bench = Bench::new();
    let readers = Arc::new(Queue::new());
    bench.index.filter = Filter::with_room_for(2 * MORE);
    bench.index.filter.begin(Arc::clone(&readers));
    let read_all = |bench: &Bench| {
        let mut count = 0;
        while let Taken::Jobs(reads) = readers.take_until(1, Instant::now()) {
            count += reads.len();
            reads.into_iter().for_each(|read| read.run(&bench.connection));
        }
        count
    };
    assert_eq!(read_all(&bench), 1, "it begins with a look at what is there");
    let mut hashes = bench.fill();
    hashes.sort_unstable();
    let (written, waiting) = hashes.split_at(MORE);
    assert!(written.iter().all(|hash| bench.index.filter.may_hold(hash)));
    assert!(!waiting.iter().all(|hash| bench.index.filter.may_hold(hash)));
    bench.index.keep();
    assert_eq!(read_all(&bench), 0, "it is not full");
    for n in 0..MORE {
        bench.add(spread(n + 1_000_000));
    }
    bench.index.place(&bench.connection).unwrap();
    assert_eq!(read_all(&bench), 0, "others do not see yet what was written");
    bench.index.keep();
    assert_eq!(read_all(&bench), 1);
}
