use super::{distance, hint};

#[test]
fn distance_counts_single_letters() {
    assert_eq!(distance("", "store"), 5);
    assert_eq!(distance("store", "store"), 0);
    assert_eq!(distance("stroe", "store"), 2);
    assert_eq!(distance("kitten", "sitting"), 3);
}

#[test]
fn only_a_near_name_is_suggested() {
    assert_eq!(hint("stroe", ["engine", "store"]), ": did you mean `store`?");
    assert_eq!(hint("sidecar", ["engine", "store"]), "");
}
