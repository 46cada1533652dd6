use super::{Told, judge};

fn told(status: u16, is_replay: bool, body: &str) -> Told {
    Told { status, is_replay, fields: Vec::new(), body: body.into() }
}

#[test]
fn one_first_answer_and_its_copies_are_right() {
    let (first, copy, conflict) = (told(201, false, "a"), told(201, true, "a"), told(409, false, "busy"));
    assert_eq!(judge(&[copy.clone(), first.clone()], true), Ok(()));
    assert_eq!(judge(&[first, copy, conflict], false), Ok(()));
}

#[test]
fn anything_else_is_wrong() {
    let (first, conflict) = (told(201, false, "a"), told(409, false, "busy"));
    let cases = [
        (vec![conflict.clone()], false),
        (vec![first.clone(), told(201, false, "a")], false),
        (vec![first.clone(), told(201, true, "b")], false),
        (vec![first.clone(), told(500, false, "a")], false),
        (vec![first, conflict], true),
    ];
    for (answers, is_waiting) in cases {
        assert!(judge(&answers, is_waiting).is_err(), "{answers:?}");
    }
}
