//! A leaf returns its entries, and damage never makes an entry absent.

use super::*;
use crate::schema;

fn index() -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    schema::create_tables(&connection).unwrap();
    connection
}

fn hash(n: u64) -> Hash {
    (u128::from(n) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835).to_be_bytes()
}

fn add_all(connection: &Connection, numbers: impl Iterator<Item = u64>) {
    let mut entries = Vec::from_iter(numbers.map(|n| IndexEntry::new(&hash(n), n.cast_signed())));
    entries.sort_unstable();
    add(connection, &entries).unwrap();
}

fn rows_of(connection: &Connection, n: u64) -> rusqlite::Result<Vec<i64>> {
    IndexLookup::new(connection).rows_of(&hash(n))
}

fn leaves(connection: &Connection) -> Vec<Leaf> {
    let mut all = Vec::new();
    let mut next = Some(i64::MIN);
    while let Some(from) = next {
        next = each(connection, from, 3, |leaf| all.push(leaf.clone())).unwrap();
    }
    all
}

#[test]
fn finds_added_entries_and_no_others() {
    let connection = index();
    assert_eq!(rows_of(&connection, 7).unwrap(), Vec::<i64>::new());
    // One by one, and many together, so that leaves are split in both ways.
    (0..1_000).for_each(|n| add_all(&connection, n..n + 1));
    add_all(&connection, 1_000..20_000);
    for n in 0..20_000 {
        assert_eq!(rows_of(&connection, n).unwrap(), [n.cast_signed()]);
    }
    assert!((20_000..21_000).all(|n| rows_of(&connection, n).unwrap().is_empty()));
    let leaves = leaves(&connection);
    assert_eq!(leaves.iter().map(|leaf| leaf.entries.len()).sum::<usize>(), 20_000);
    assert!(leaves.iter().all(|leaf| (1..=ENTRIES_MAX).contains(&leaf.entries.len())));
}

#[test]
fn removes_one_of_two_rows_of_a_hash() {
    let connection = index();
    let (one, two) = (IndexEntry::new(&hash(1), 5), IndexEntry::new(&hash(1), 9));
    add(&connection, &[one, two]).unwrap();
    add(&connection, &[one]).unwrap();
    assert_eq!(rows_of(&connection, 1).unwrap(), [5, 9]);
    remove(&connection, &one).unwrap();
    remove(&connection, &one).unwrap();
    assert_eq!(rows_of(&connection, 1).unwrap(), [9]);
}

#[test]
fn entries_with_equal_keys_share_a_longer_leaf() {
    let connection = index();
    // The same second half: so many do not occur, but none may be lost.
    let alike = |n: usize| {
        let mut hash = hash(1);
        hash[..8].copy_from_slice(&n.to_be_bytes());
        IndexEntry::new(&hash, 1)
    };
    let mut entries = Vec::from_iter((0..3 * ENTRIES_MAX).map(alike));
    entries.sort_unstable();
    add(&connection, &entries).unwrap();
    add_all(&connection, 10..20);
    let leaves = leaves(&connection);
    assert!(leaves.iter().any(|leaf| leaf.entries.len() >= 3 * ENTRIES_MAX));
    assert_eq!(IndexLookup::new(&connection).rows_of(&entries[0].hash()).unwrap(), [1]);
    assert_eq!(rows_of(&connection, 15).unwrap(), [15]);
}

#[test]
fn no_flipped_bit_of_a_leaf_makes_an_entry_absent() {
    let connection = index();
    add_all(&connection, 0..40);
    let whole: Vec<u8> = connection.query_row("SELECT body FROM leaf", [], |row| row.get(0)).unwrap();
    for bit in 0..whole.len() * 8 {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(Leaf::from_bytes(i64::MIN, &damaged), None, "bit {bit}");
    }
    for length in 0..whole.len() {
        assert_eq!(Leaf::from_bytes(i64::MIN, &whole[..length]), None, "cut to {length}");
    }
    assert!(Leaf::from_bytes(i64::MIN, &whole).is_some());
    assert_eq!(Leaf::from_bytes(i64::MIN + 1, &whole), None, "it is of another leaf");
}

#[test]
fn a_missing_leaf_is_damage() {
    let connection = index();
    add_all(&connection, 0..5_000);
    let lows = Vec::from_iter(leaves(&connection).iter().map(|leaf| leaf.low));
    let gone = lows[lows.len() / 2];
    connection.execute("DELETE FROM leaf WHERE low = ?1", [gone]).unwrap();
    let (mut found, mut damaged) = (0, 0);
    for n in 0..6_000 {
        match rows_of(&connection, n) {
            Ok(rows) => {
                assert_eq!(rows, if n < 5_000 { vec![n.cast_signed()] } else { vec![] }, "{n}");
                found += 1;
            }
            Err(_) => damaged += 1,
        }
    }
    assert!(damaged > 50 && found > 5_000, "{damaged} and {found}");
    connection.execute("DELETE FROM leaf", []).unwrap();
    assert!(
        (0..6_000).all(|n| rows_of(&connection, n).is_err()),
        "an index without leaves is damaged, not empty"
    );
}

#[test]
fn leaves_keep_their_length() {
    let connection = index();
    add_all(&connection, 0..100);
    let length = |connection: &Connection| -> i64 {
        connection.query_row("SELECT length(body) FROM leaf", [], |row| row.get(0)).unwrap()
    };
    let before = length(&connection);
    add_all(&connection, 100..ENTRIES_MAX as u64);
    assert_eq!(length(&connection), before);
}
