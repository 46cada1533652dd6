use super::{Mark, Memory, Seen};

fn seen(id: &str, pulse: i64) -> Seen {
    Seen { id: id.to_owned(), pulse }
}

#[test]
fn a_loss_is_another_id_or_a_number_seen_before() {
    let table = [
        (None, seen("a", 1), Memory::Whole),
        (Some(seen("a", 1)), seen("a", 2), Memory::Whole),
        (Some(seen("a", 2)), seen("a", 9), Memory::Whole),
        (Some(seen("a", 2)), seen("a", 2), Memory::Lost),
        (Some(seen("a", 2)), seen("a", 1), Memory::Lost),
        (Some(seen("a", 2)), seen("b", 3), Memory::Lost),
    ];
    for (before, now, expected) in table {
        let mark = Mark::default();
        assert_eq!(mark.judge(before.as_ref(), now.clone()), expected, "{before:?} {now:?}");
    }
}

#[test]
fn looks_that_overtake_each_other_are_no_loss() {
    let mark = Mark::default();
    let first = seen("a", 1);
    mark.judge(None, first.clone());
    // Both were sent when 1 was known, and the second answer came first.
    assert_eq!(mark.judge(Some(&first), seen("a", 3)), Memory::Whole);
    assert_eq!(mark.judge(Some(&first), seen("a", 2)), Memory::Whole);
    assert_eq!(mark.known(), Some(seen("a", 3)), "the greatest is remembered");
}
