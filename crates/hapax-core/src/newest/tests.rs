use super::{Newest, format, parse};
use crate::{Query, RecordId, Timestamp};

fn id(number: u8) -> RecordId {
    RecordId::parse(&format!("{number:02x}").repeat(32)).unwrap()
}

fn page(cursor: Option<String>, limit: usize) -> (Vec<RecordId>, Option<String>) {
    let mut newest = Newest::of(&Query { cursor, limit, ..Query::default() }).unwrap();
    // Two of one moment, and one that cannot be read.
    for (number, millis) in [(3, Some(10)), (1, Some(30)), (9, None), (2, Some(30)), (4, Some(20))] {
        newest.offer(id(number), millis.map(Timestamp::from_millis));
    }
    newest.page()
}

#[test]
fn pages_follow_each_other_from_the_newest_to_what_has_no_age() {
    for limit in 1..6 {
        let (mut all, mut cursor) = (Vec::new(), None);
        loop {
            let (ids, next) = page(cursor, limit);
            assert!(ids.len() == limit || next.is_none(), "only the last page is short");
            all.extend(ids);
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(all, [1, 2, 4, 3, 9].map(id), "{limit} at a time");
    }
}

#[test]
fn a_page_of_nothing_is_closed_and_empty() {
    assert!(Newest::of(&Query { limit: 0, ..Query::default() }).unwrap().is_closed());
    assert_eq!(page(None, 0), (Vec::new(), None));
}

#[test]
fn a_cursor_reads_back_and_nothing_else_does() {
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
