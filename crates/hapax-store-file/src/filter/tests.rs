//! Nothing that the index knows is taken for unknown, whatever happens meanwhile.

use std::time::Instant;

use super::*;
use crate::leaf::Entry;
use crate::queue::Taken;
use crate::schema;

/// Entries of an index in which a look takes three pieces, the last of them short.
const ENTRIES: usize = 30_000;

struct Bench {
    connection: Connection,
    readers: Arc<Queue<Read>>,
    filter: Filter,
}

impl Bench {
    /// An index with so many entries, and a filter that takes as many as are given at most.
    fn new(entries: usize, entries_max: usize) -> Self {
        let connection = Connection::open_in_memory().unwrap();
        let bench =
            Self { connection, readers: Arc::new(Queue::new()), filter: Filter::with_room_for(entries_max) };
        bench.fill(0..entries);
        bench
    }

    /// Makes an index with these entries.
    fn fill(&self, numbers: std::ops::Range<usize>) {
        schema::make_tables(&self.connection).unwrap();
        let mut entries = Vec::from_iter(numbers.map(|n| Entry::new(&hash(n), 1)));
        entries.sort_unstable();
        leaf::add(&self.connection, &entries).unwrap();
    }

    fn place(&self, hash: &Hash) {
        leaf::add(&self.connection, &[Entry::new(hash, 1)]).unwrap();
    }

    fn begin(&mut self) {
        self.filter.begin(Arc::clone(&self.readers));
    }

    /// Reads one piece; whether there was one to read.
    fn read(&self) -> bool {
        match self.readers.take_until(1, Instant::now()) {
            Taken::Jobs(reads) => {
                reads.into_iter().for_each(|read| read.run(&self.connection));
                true
            }
            Taken::Nothing | Taken::Closed => false,
        }
    }

    fn read_all(&self) {
        while self.read() {}
    }

    /// How many of a thousand hashes that nobody added seem to be there.
    fn mistaken(&mut self) -> usize {
        (0..1_000).filter(|n| self.filter.may_hold(&hash(usize::MAX - n))).count()
    }

    fn holds_all(&mut self, mut numbers: impl Iterator<Item = usize>) -> bool {
        numbers.all(|n| self.filter.may_hold(&hash(n)))
    }
}

/// As good as random.
fn hash(n: usize) -> Hash {
    let [first, second] = [1_u64, 2].map(|half| {
        let mixed = (n as u64).wrapping_add(half.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ mixed >> 31).to_le_bytes()
    });
    std::array::from_fn(|at| if at < 8 { first[at] } else { second[at - 8] })
}

#[test]
fn whatever_was_added_is_held_and_few_others_are() {
    let mut seen = Seen::default();
    let count = 5 * BLOCKS_FIRST * ENTRIES_A_BLOCK;
    (0..count).for_each(|n| seen.add(&hash(n)));
    assert_eq!(seen.levels.len(), 3);
    assert!((count - count / 50..=count).contains(&seen.count), "{} of {count}", seen.count);
    let before = seen.count;
    (0..count).for_each(|n| seen.add(&hash(n)));
    assert_eq!(seen.count, before, "all of them are there already");
    assert!((0..count).all(|n| seen.may_hold(&hash(n))));
    let mistaken = (count..2 * count).filter(|n| seen.may_hold(&hash(*n))).count();
    assert!(mistaken < count / 50, "{mistaken} of {count}");
}

#[test]
fn hashes_of_one_key_in_many_scopes_are_told_apart() {
    let in_scope = |n: usize| {
        let mut of_key = hash(n);
        of_key[..8].fill(7);
        of_key
    };
    let mut seen = Seen::default();
    (0..10_000).for_each(|n| seen.add(&in_scope(n)));
    assert!((0..10_000).all(|n| seen.may_hold(&in_scope(n))));
    let mistaken = (10_000..20_000).filter(|n| seen.may_hold(&in_scope(*n))).count();
    assert!(mistaken < 200, "{mistaken}");
}

#[test]
fn the_index_is_asked_until_it_was_looked_through_to_its_end() {
    let mut bench = Bench::new(ENTRIES, ENTRIES_MAX);
    assert_eq!(bench.mistaken(), 1_000, "nobody has looked");
    bench.begin();
    assert!(bench.read() && bench.read());
    assert_eq!(bench.mistaken(), 1_000, "a piece is missing");
    bench.read_all();
    assert!(bench.mistaken() < 20);
    assert!(bench.holds_all(0..ENTRIES));
}

#[test]
fn what_is_written_while_somebody_looks_is_held() {
    let mut bench = Bench::new(ENTRIES, ENTRIES_MAX);
    bench.begin();
    let before = ENTRIES..ENTRIES + 100;
    before.clone().for_each(|n| bench.filter.add(&hash(n)));
    bench.read_all();
    // It is over, and nobody has taken notice yet.
    let after = ENTRIES + 100..ENTRIES + 200;
    after.clone().for_each(|n| bench.filter.add(&hash(n)));
    assert!(bench.holds_all(0..after.end));
    assert!(bench.mistaken() < 20);
    let later = after.end..after.end + 100;
    later.clone().for_each(|n| bench.filter.add(&hash(n)));
    assert!(bench.holds_all(0..later.end));
}

#[test]
fn an_index_that_cannot_be_read_is_asked() {
    let mut bench = Bench::new(ENTRIES, ENTRIES_MAX);
    bench.begin();
    assert!(bench.read());
    bench.connection.execute_batch("DROP TABLE leaf").unwrap();
    bench.read_all();
    assert_eq!(bench.mistaken(), 1_000);
}

#[test]
fn a_filter_that_is_full_starts_again_with_what_is_left() {
    let mut bench = Bench::new(0, 1_000);
    bench.begin();
    bench.read_all();
    assert_eq!(bench.mistaken(), 0);
    (0..1_000).for_each(|n| bench.filter.add(&hash(n)));
    assert!(!bench.read(), "what was added may be in a transaction that others do not see yet");
    assert!(bench.holds_all(0..1_000));
    assert!(bench.mistaken() < 20);
    // It is there now, and most of the others are gone again.
    (900..1_000).for_each(|n| bench.place(&hash(n)));
    bench.filter.renew_if_full();
    assert_eq!(bench.mistaken(), 1_000, "it was not looked through yet");
    bench.read_all();
    assert!(bench.mistaken() < 20);
    assert!(bench.holds_all(900..1_000));
    assert!(!bench.holds_all(0..900), "it has forgotten the others");
}

#[test]
fn an_index_with_too_many_entries_is_asked() {
    let mut bench = Bench::new(501, 1_000);
    bench.begin();
    bench.read_all();
    assert_eq!(bench.mistaken(), 1_000);
    assert!(bench.filter.look.is_none(), "nobody looks any more");
}

/// How many of a thousand unknown hashes the filter of a store with this damage takes for known.
fn mistaken_after(damage: impl FnOnce(&Bench)) -> usize {
    let mut bench = Bench::new(ENTRIES, ENTRIES_MAX);
    damage(&bench);
    bench.begin();
    bench.read_all();
    bench.mistaken()
}

#[test]
fn an_index_with_a_leaf_that_is_damaged_or_missing_is_asked() {
    assert!(mistaken_after(|_| ()) < 20, "without damage it is not");
    // The first and the last of the index and of pieces, and those between.
    for at in [0, 50, 99, 100, 101, 255] {
        let leaf = format!("WHERE low = (SELECT low FROM leaf ORDER BY low LIMIT 1 OFFSET {at})");
        let damages = [
            "DELETE FROM leaf ".to_owned(),
            "UPDATE leaf SET low = low + 1 ".to_owned(),
            "UPDATE leaf SET body = substr(body, 1, 100) || x'00' || substr(body, 102) ".to_owned(),
            // Another leaf that is whole.
            format!(
                "UPDATE leaf SET body = (SELECT body FROM leaf ORDER BY low LIMIT 1 OFFSET {}) ",
                at / 2 + 7
            ),
        ];
        for damage in damages {
            let statement = damage + &leaf;
            let mistaken = mistaken_after(|bench| {
                assert_eq!(bench.connection.execute(&statement, []).unwrap(), 1, "{statement}");
            });
            assert_eq!(mistaken, 1_000, "{statement}");
        }
    }
}

#[test]
fn a_look_that_nobody_goes_on_with_is_over() {
    let mut bench = Bench::new(ENTRIES, ENTRIES_MAX);
    bench.begin();
    assert!(bench.read());
    drop(bench.readers.abort());
    assert_eq!(bench.mistaken(), 1_000);
    assert!(bench.filter.look.is_none(), "nothing is noted any more");
}

#[test]
fn a_store_that_ends_is_looked_through_no_further() {
    let mut bench = Bench::new(ENTRIES, ENTRIES_MAX);
    bench.begin();
    bench.readers.close();
    assert!(bench.read());
    assert!(!bench.read());
    assert_eq!(bench.mistaken(), 1_000);
    assert!(bench.filter.look.is_none());
}

#[test]
fn a_filter_takes_as_many_bytes_as_are_planned_for_it() {
    let mut seen = Seen::default();
    let level = BLOCKS_FIRST * ENTRIES_A_BLOCK;
    let bytes =
        |seen: &Seen| -> u64 { seen.levels.iter().map(|level| size_of_val(&*level.blocks) as u64).sum() };
    for n in 0..4 * level {
        if [0, 1, level, level + level / 50, 3 * level].contains(&n) {
            // Some hashes seem to be there already and take no room.
            assert!(bytes(&seen) <= bytes_max(n as u64), "{n}");
            assert_eq!(bytes(&seen), bytes_max(seen.count as u64), "{n}");
        }
        seen.add(&hash(n));
    }
}
