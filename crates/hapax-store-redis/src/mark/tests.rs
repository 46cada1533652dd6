use super::{Marks, Memory, Seen};
use crate::slots::{Territory, slot_of};

const KEY: &str = "hapax:generation";

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
        let marks = Marks::new("hapax:");
        assert_eq!(marks.judge(KEY, before.as_ref(), now.clone()), expected, "{before:?} {now:?}");
    }
}

#[test]
fn looks_that_overtake_each_other_are_no_loss() {
    let marks = Marks::new("hapax:");
    let first = seen("a", 1);
    marks.judge(KEY, None, first.clone());
    // Both were sent when 1 was known, and the second answer came first.
    assert_eq!(marks.judge(KEY, Some(&first), seen("a", 3)), Memory::Whole);
    assert_eq!(marks.judge(KEY, Some(&first), seen("a", 2)), Memory::Whole);
    assert_eq!(marks.known(KEY), Some(seen("a", 3)), "the greatest is remembered");
}

#[test]
fn every_shard_has_a_mark_and_keeps_those_that_come_to_it() {
    let marks = Marks::new("hapax:");
    let home = slot_of(KEY.as_bytes());
    let (below, above) = (Territory::Slots(vec![(7, home)]), Territory::Slots(vec![(home + 1, 16383)]));
    assert_eq!(marks.of(&Territory::Everything), [KEY]);
    assert_eq!(marks.of(&below), [KEY]);
    let [other] = &marks.of(&above)[..] else { panic!("a shard without a mark gets one") };
    assert_eq!(slot_of(other.as_bytes()), home + 1);
    assert!(other.starts_with(KEY));

    marks.judge(KEY, None, seen("a", 1));
    marks.judge(other, None, seen("b", 1));
    // All slots have come to one of them: it is looked at both.
    let mut together = marks.of(&Territory::Slots(vec![(0, 16383)]));
    together.sort();
    assert_eq!(together, [KEY.to_owned(), other.clone()]);
    // A slot that is gone took its mark along, and another one is begun.
    let rest = Territory::Slots(vec![(home + 2, 16383)]);
    assert_eq!(marks.of(&rest).iter().map(|key| slot_of(key.as_bytes())).collect::<Vec<_>>(), [home + 2]);
    assert_eq!(marks.of(&Territory::none()), [""; 0], "where there are no slots, nothing can be lost");
}
