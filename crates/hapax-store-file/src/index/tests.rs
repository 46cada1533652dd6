//! What waits for the index is found, is written in rounds, and comes back when a transaction does not hold.

use std::collections::HashMap;

use super::*;
use crate::schema;

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
        schema::make_tables(&connection).unwrap();
        let meta = Meta::read_sealed(&connection).unwrap();
        let mut index = Index::open(&meta);
        index.let_wait(WAITING);
        Self { connection, index }
    }

    /// What a commit remembers.
    fn note(&self) {
        let mut meta = Meta::read_sealed(&self.connection).unwrap();
        self.index.note(&mut meta);
        meta.write(&self.connection).unwrap();
    }

    /// The transaction holds.
    fn keep(&mut self) {
        self.note();
        self.index.keep();
    }

    /// A process died, and the next one opens what was committed.
    fn crash(&mut self) -> rusqlite::Result<()> {
        let meta = Meta::read_sealed(&self.connection).unwrap();
        self.index = Index::open(&meta);
        self.index.let_wait(WAITING);
        self.index.place_waiting(&self.connection)?;
        self.keep();
        Ok(())
    }

    /// Every entry of the index in the database, in order.
    fn placed_entries(&self) -> Vec<Entry> {
        let mut all = Vec::new();
        let mut next = Some(i64::MIN);
        while let Some(from) = next {
            next =
                leaf::each(&self.connection, from, 10, |leaf| all.extend_from_slice(leaf.entries())).unwrap();
        }
        all
    }

    /// Every record, by row.
    fn records(&self) -> BTreeSet<Entry> {
        let mut all = BTreeSet::new();
        each_record_after(&self.connection, i64::MIN, |entry| all.extend([entry])).unwrap();
        all
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

    fn placed(&self) -> usize {
        self.placed_entries().len()
    }

    fn waiting(&self) -> usize {
        self.index.recent().entries.read().len()
    }

    /// Records that the index should lead to and does not.
    fn missing(&self) -> usize {
        let indexed_row = self.number("SELECT indexed_row FROM meta");
        let placed = BTreeSet::from_iter(self.placed_entries());
        self.records().iter().filter(|entry| entry.row <= indexed_row && !placed.contains(entry)).count()
    }

    /// Entries of the index that lead to no record of theirs.
    fn dangling(&self) -> usize {
        let records = self.records();
        self.placed_entries().iter().filter(|entry| !records.contains(entry)).count()
    }

    /// Records that neither the memory nor the index leads to.
    fn lost(&self) -> usize {
        let placed = BTreeSet::from_iter(self.placed_entries());
        let recent = self.index.recent().entries.read();
        self.records().iter().filter(|entry| !placed.contains(entry) && !recent.contains(entry)).count()
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
    bench.keep();
    assert_eq!(bench.index.recent().rows_of(&[7; 16]), [row, other]);
    assert_eq!(bench.index.recent().rows_of(&[8; 16]), Vec::<i64>::new());
    assert_eq!(bench.placed(), 0);
}

#[test]
fn many_entries_are_written_from_the_lowest_on() {
    let mut bench = Bench::new();
    bench.fill();
    assert_eq!(bench.waiting(), WAITING + MORE, "they leave the memory when the transaction holds");
    bench.keep();
    assert_eq!((bench.placed(), bench.waiting()), (MORE, WAITING));
    let lowest = Vec::from_iter(bench.records().into_iter().take(MORE));
    assert_eq!(bench.placed_entries(), lowest);
}

#[test]
fn what_a_transaction_did_is_undone_with_it() {
    let mut bench = Bench::new();
    bench.fill();
    bench.keep();
    bench.connection.execute_batch("BEGIN").unwrap();
    let before = (bench.placed(), bench.waiting(), bench.index.books.from);
    let row = bench.add([7; 16]);
    for n in 0..MORE {
        bench.add(spread(n + 1_000_000));
    }
    let last = *bench.index.recent().entries.read().last().unwrap();
    let (hash, waiting) = (last.hash(), last.row);
    bench.index.remove(&bench.connection, hash, waiting).unwrap();
    bench.index.place(&bench.connection).unwrap();
    bench.connection.execute_batch("ROLLBACK").unwrap();
    bench.index.undo();
    assert_eq!((bench.placed(), bench.waiting(), bench.index.books.from), before);
    assert_eq!(bench.index.recent().rows_of(&hash), [waiting]);
    assert_eq!(bench.index.recent().rows_of(&[7; 16]), Vec::<i64>::new());
    assert!(bench.add([7; 16]) > row, "a number of a row comes once");
}

#[test]
fn whatever_happens_every_record_is_found_and_every_row_up_to_the_mark_is_in_the_index() {
    let mut bench = Bench::new();
    let mut rows: HashMap<Hash, i64> = bench.fill().into_iter().zip(1..).collect();
    bench.keep();
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
        bench.keep();
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
    bench.keep();
    assert_eq!((bench.placed(), bench.number("SELECT waiting FROM meta")), (0, 10));
    bench.crash().unwrap();
    assert_eq!((bench.placed(), bench.number("SELECT indexed_row FROM meta")), (10, 10));
    assert_eq!(bench.number("SELECT waiting FROM meta"), 0);
}

#[test]
fn a_record_that_is_missing_or_another_after_a_crash_is_noticed() {
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
        bench.keep();
        bench.execute(damage);
        assert!(bench.crash().is_err(), "{damage}");
    }
}

#[test]
fn all_is_written_at_the_end_of_a_store() {
    let mut bench = Bench::new();
    bench.fill();
    bench.keep();
    bench.index.place_all(&bench.connection).unwrap();
    bench.keep();
    assert_eq!((bench.placed(), bench.waiting(), bench.missing()), (WAITING + MORE, 0, 0));
    assert_eq!(bench.number("SELECT waiting FROM meta"), 0);
    bench.crash().unwrap();
}

#[test]
fn an_index_that_is_made_anew_leads_to_every_record() {
    let mut bench = Bench::new();
    bench.fill();
    bench.keep();
    let mut meta = Meta::read_sealed(&bench.connection).unwrap();
    make_anew(&bench.connection, &mut meta).unwrap();
    meta.write(&bench.connection).unwrap();
    assert_eq!((bench.placed(), bench.missing(), bench.dangling()), (WAITING + MORE, 0, 0));
    bench.crash().unwrap();
}

#[test]
fn rows_of_removed_records_do_not_come_again() {
    let mut bench = Bench::new();
    let rows = Vec::from_iter((0..10).map(|n| (spread(n), bench.add(spread(n)))));
    bench.keep();
    bench.crash().unwrap();
    for (hash, row) in rows {
        bench.remove(hash, row);
    }
    bench.keep();
    bench.crash().unwrap();
    assert_eq!(bench.index.add([7; 16]), 11);
}

#[test]
fn what_is_rolled_back_and_what_a_crash_forgets_hides_no_record() {
    const TRANSACTIONS: usize = 1_000;
    let mut bench = Bench::new();
    let mut kept: Vec<(Hash, i64)> = Vec::new();
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
            bench.note();
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
            bench.crash().unwrap();
            assert_eq!(bench.lost(), 0, "after a crash");
        }
    }
    assert!(marks.len() > 3, "{marks:?}");
    assert_eq!(bench.dangling(), 0);
}
