use super::{DataState, GenerationMarks, MarkReading};
use crate::slots::{SlotSet, slot_of};

const KEY: &str = "hapax:generation";

fn seen(id: &str, pulse: i64) -> MarkReading {
    MarkReading { id: id.to_owned(), pulse }
}

#[test]
fn another_id_or_a_counter_seen_before_is_a_loss() {
    let table = [
        (None, seen("a", 1), DataState::Intact),
        (Some(seen("a", 1)), seen("a", 2), DataState::Intact),
        (Some(seen("a", 2)), seen("a", 9), DataState::Intact),
        (Some(seen("a", 2)), seen("a", 2), DataState::Lost),
        (Some(seen("a", 2)), seen("a", 1), DataState::Lost),
        (Some(seen("a", 2)), seen("b", 3), DataState::Lost),
    ];
    for (before, now, expected) in table {
        let marks = GenerationMarks::new("hapax:");
        assert_eq!(marks.record_reading(KEY, before.as_ref(), now.clone()), expected, "{before:?} {now:?}");
    }
}

#[test]
fn checks_that_return_out_of_order_are_no_loss() {
    let marks = GenerationMarks::new("hapax:");
    let first = seen("a", 1);
    marks.record_reading(KEY, None, first.clone());
    // Both were sent when 1 was known, and the second reply came first.
    assert_eq!(marks.record_reading(KEY, Some(&first), seen("a", 3)), DataState::Intact);
    assert_eq!(marks.record_reading(KEY, Some(&first), seen("a", 2)), DataState::Intact);
    assert_eq!(marks.known(KEY), Some(seen("a", 3)), "the greatest is kept");
}

#[test]
fn every_shard_has_a_mark_and_checks_those_that_move_to_it() {
    let marks = GenerationMarks::new("hapax:");
    let home = slot_of(KEY.as_bytes());
    let (below, above) = (SlotSet::Ranges(vec![(7, home)]), SlotSet::Ranges(vec![(home + 1, 16383)]));
    assert_eq!(marks.of(&SlotSet::All), [KEY]);
    assert_eq!(marks.of(&below), [KEY]);
    let [other] = &marks.of(&above)[..] else { panic!("a shard without a mark gets one") };
    assert_eq!(slot_of(other.as_bytes()), home + 1);
    assert!(other.starts_with(KEY));

    marks.record_reading(KEY, None, seen("a", 1));
    marks.record_reading(other, None, seen("b", 1));
    // All slots have moved to one of them: it checks both marks.
    let mut together = marks.of(&SlotSet::Ranges(vec![(0, 16383)]));
    together.sort();
    assert_eq!(together, [KEY.to_owned(), other.clone()]);
    // A slot that moved away took its mark along, and a new one is created.
    let rest = SlotSet::Ranges(vec![(home + 2, 16383)]);
    assert_eq!(marks.of(&rest).iter().map(|key| slot_of(key.as_bytes())).collect::<Vec<_>>(), [home + 2]);
    assert_eq!(marks.of(&SlotSet::none()), [""; 0], "without slots there are no marks");
}
