//! A changed row is never accepted.

use super::*;
use crate::schema;

const META: Meta = Meta {
    seen: Timestamp::from_millis(7_000),
    indexed_row: 3,
    next_row: 9,
    waiting: SetDigest { count: 5, sum: 8 },
    wal_generation: 12,
    salt: 4,
    is_open: true,
};

fn database() -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    schema::create_tables(&connection).unwrap();
    META.write(&connection).unwrap();
    connection
}

#[test]
fn reads_the_written_row() {
    let connection = database();
    assert_eq!(Meta::read(&connection).unwrap(), MetaRow::Sealed(META));
    let closed = Meta { is_open: false, ..META };
    closed.write(&connection).unwrap();
    assert_eq!(Meta::read_sealed(&connection).unwrap(), closed);
}

#[test]
fn a_changed_number_is_damage() {
    for column in
        ["seen_ms", "indexed_row", "next_row", "waiting", "waiting_sum", "journal", "salt", "is_open"]
    {
        for value in [format!("{column} + 1"), format!("{column} | (1 << 44)"), format!("'{column}'")] {
            let connection = database();
            connection.execute(&format!("UPDATE meta SET {column} = {value}"), []).unwrap();
            assert_eq!(Meta::read(&connection).unwrap(), MetaRow::Damaged, "{column} = {value}");
            assert!(Meta::read_sealed(&connection).is_err());
        }
    }
    let connection = database();
    connection.execute("DELETE FROM meta", []).unwrap();
    assert_eq!(Meta::read(&connection).unwrap(), MetaRow::Damaged);
}

#[test]
fn only_the_exact_word_requests_a_rebuild() {
    for (seal, is_requested) in
        [("'anew'", true), ("NULL", false), ("0", false), ("x'616e6577'", false), ("'anev'", false)]
    {
        let connection = database();
        connection.execute(&format!("UPDATE meta SET seal = {seal}"), []).unwrap();
        let found = Meta::read(&connection).unwrap();
        assert_eq!(found, if is_requested { MetaRow::Rebuild(META) } else { MetaRow::Damaged }, "{seal}");
    }
}

#[test]
fn a_tally_knows_a_set_whatever_the_order() {
    let entry = |n: u8, row| IndexEntry::new(&[n; 16], row);
    let (mut one, mut other) = (SetDigest::default(), SetDigest::default());
    [entry(1, 5), entry(2, 6)].iter().for_each(|entry| one.add(entry));
    [entry(2, 6), entry(3, 7), entry(1, 5)].iter().for_each(|entry| other.add(entry));
    assert_ne!(one, other);
    other.take(&entry(3, 7));
    assert_eq!(one, other);
    // The same numbers in other pairs.
    let mut crossed = SetDigest::default();
    [entry(1, 6), entry(2, 5)].iter().for_each(|entry| crossed.add(entry));
    assert_ne!(one, crossed);
}
