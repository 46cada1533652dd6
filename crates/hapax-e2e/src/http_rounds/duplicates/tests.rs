use super::{HttpReply, check_round};

fn reply(status: u16, is_replay: bool, body: &str) -> HttpReply {
    HttpReply { status, is_replay, fields: Vec::new(), body: body.into() }
}

#[test]
fn one_execution_and_its_replays_are_right() {
    let (first, copy, conflict) = (reply(201, false, "a"), reply(201, true, "a"), reply(409, false, "busy"));
    assert_eq!(check_round(&[copy.clone(), first.clone()], true), Ok(()));
    assert_eq!(check_round(&[first, copy, conflict], false), Ok(()));
}

#[test]
fn any_other_response_is_wrong() {
    let (first, conflict) = (reply(201, false, "a"), reply(409, false, "busy"));
    let cases = [
        (vec![conflict.clone()], false),
        (vec![first.clone(), reply(201, false, "a")], false),
        (vec![first.clone(), reply(201, true, "b")], false),
        (vec![first.clone(), reply(500, false, "a")], false),
        (vec![first, conflict], true),
    ];
    for (answers, is_waiting) in cases {
        assert!(check_round(&answers, is_waiting).is_err(), "{answers:?}");
    }
}
