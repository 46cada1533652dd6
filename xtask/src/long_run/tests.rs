use super::{find, list};
use crate::catalogue::{BENCHES, PROOFS};

#[test]
fn the_list_has_one_line_for_each_entry() {
    let list = list(PROOFS);
    assert_eq!(list.lines().count(), PROOFS.len());
    assert!(PROOFS.iter().all(|entry| list.contains(entry.name) && list.contains(entry.about)));
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest_and_the_list() {
    let error = find(BENCHES, "bench", "stor").unwrap_err().to_string();
    assert!(error.starts_with("`bench` knows no `stor`: did you mean `store`?"), "{error}");
    assert!(error.contains("engine"), "{error}");
}
