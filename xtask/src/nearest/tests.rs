use super::{distance, hint};

#[test]
fn distance_counts_single_letters() {
    assert_eq!(distance("", "store"), 5);
    assert_eq!(distance("store", "store"), 0);
    assert_eq!(distance("stroe", "store"), 2);
    assert_eq!(distance("kitten", "sitting"), 3);
}

#[test]
fn a_near_name_is_offered_and_a_far_one_is_not() {
    assert_eq!(hint("stroe", ["engine", "store"]), ": did you mean `store`?");
    assert_eq!(hint("sidecar", ["engine", "store"]), "");
}
