//! A row that is not what was written is never believed.

use super::*;
use crate::schema;

const META: Meta = Meta {
    seen: Timestamp::from_millis(7_000),
    indexed_row: 3,
    next_row: 9,
    waiting: Tally { count: 5, sum: 8 },
    journal: 12,
    salt: 4,
    is_open: true,
};

fn database() -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    schema::make_tables(&connection).unwrap();
    META.write(&connection).unwrap();
    connection
}

#[test]
fn what_was_written_is_read() {
    let connection = database();
    assert_eq!(Meta::read(&connection).unwrap(), Stored::Sealed(META));
    let closed = Meta { is_open: false, ..META };
    closed.write(&connection).unwrap();
    assert_eq!(Meta::read_sealed(&connection).unwrap(), closed);
}

#[test]
fn a_number_that_changed_is_damage() {
    for column in
        ["seen_ms", "indexed_row", "next_row", "waiting", "waiting_sum", "journal", "salt", "is_open"]
    {
        for value in [format!("{column} + 1"), format!("{column} | (1 << 44)"), format!("'{column}'")] {
            let connection = database();
            connection.execute(&format!("UPDATE meta SET {column} = {value}"), []).unwrap();
            assert_eq!(Meta::read(&connection).unwrap(), Stored::Damaged, "{column} = {value}");
            assert!(Meta::read_sealed(&connection).is_err());
        }
    }
    let connection = database();
    connection.execute("DELETE FROM meta", []).unwrap();
    assert_eq!(Meta::read(&connection).unwrap(), Stored::Damaged);
}

#[test]
fn only_the_word_itself_asks_for_a_new_index() {
    for (seal, is_asked) in
        [("'anew'", true), ("NULL", false), ("0", false), ("x'616e6577'", false), ("'anev'", false)]
    {
        let connection = database();
        connection.execute(&format!("UPDATE meta SET seal = {seal}"), []).unwrap();
        let found = Meta::read(&connection).unwrap();
        assert_eq!(found, if is_asked { Stored::Anew(META) } else { Stored::Damaged }, "{seal}");
    }
}

#[test]
fn a_tally_knows_a_set_whatever_the_order() {
    let entry = |n: u8, row| IndexEntry::new(&[n; 16], row);
    let (mut one, mut other) = (Tally::default(), Tally::default());
    [entry(1, 5), entry(2, 6)].iter().for_each(|entry| one.add(entry));
    [entry(2, 6), entry(3, 7), entry(1, 5)].iter().for_each(|entry| other.add(entry));
    assert_ne!(one, other);
    other.take(&entry(3, 7));
    assert_eq!(one, other);
    // The same numbers, paired otherwise.
    let mut crossed = Tally::default();
    [entry(1, 6), entry(2, 5)].iter().for_each(|entry| crossed.add(entry));
    assert_ne!(one, crossed);
}
