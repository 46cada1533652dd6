use super::{Newest, format, parse};
use crate::{Query, RecordId, Timestamp};

fn id(number: u8) -> RecordId {
    RecordId::parse(&format!("{number:02x}").repeat(32)).unwrap()
}

fn page(cursor: Option<String>, limit: usize) -> (Vec<RecordId>, Option<String>) {
    let mut newest = Newest::of(&Query { cursor, limit, ..Query::default() }).unwrap();
    // Two with the same creation time, and one unreadable.
    for (number, millis) in [(3, Some(10)), (1, Some(30)), (9, None), (2, Some(30)), (4, Some(20))] {
        newest.offer(id(number), millis.map(Timestamp::from_millis));
    }
    newest.page()
}

#[test]
fn lists_newest_first_and_unreadable_records_last() {
    for limit in 1..6 {
        let (mut all, mut cursor) = (Vec::new(), None);
        loop {
            let (ids, next) = page(cursor, limit);
            assert!(ids.len() == limit || next.is_none(), "a short page that is not the last");
            all.extend(ids);
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(all, [1, 2, 4, 3, 9].map(id), "limit {limit}");
    }
}

#[test]
fn a_limit_of_zero_gives_a_closed_and_empty_page() {
    assert!(Newest::of(&Query { limit: 0, ..Query::default() }).unwrap().is_closed());
    assert_eq!(page(None, 0), (Vec::new(), None));
}

#[test]
fn cursors_round_trip_and_malformed_ones_are_refused() {
    let id = "ab".repeat(32);
    for cursor in [format!("0-{id}"), format!("19a8c3f2b11-{id}")] {
        assert_eq!(parse(&cursor).as_ref().map(format).as_deref(), Some(cursor.as_str()));
    }
    for cursor in [String::new(), "-".to_owned(), format!("+1-{id}"), format!("01-{id}"), format!("1-{id}0")]
    {
        let query = Query { cursor: Some(cursor.clone()), ..Query::default() };
        assert!(Newest::of(&query).is_none(), "{cursor}");
    }
}
