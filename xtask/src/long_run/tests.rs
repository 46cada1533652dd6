use super::{find, is_narrowed, list, unless_typed};
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

#[test]
fn a_typed_flag_takes_the_place_of_the_programs_own_and_others_join_it() {
    let own = ["--executors", "3"];
    let with = |typed: &[&str]| {
        let typed: Vec<String> = typed.iter().map(|flag| (*flag).to_owned()).collect();
        unless_typed(&own, &typed).len()
    };
    assert_eq!(with(&[]), 2);
    assert_eq!(with(&["--mode", "amo"]), 2);
    assert_eq!(with(&["--executors", "2"]), 0);
    assert_eq!(with(&["--executors=2"]), 0);
}

#[test]
fn whoever_names_a_store_is_not_told_of_the_goals_of_others() {
    let chaos = find(PROOFS, "prove", "chaos").unwrap();
    let is_narrowed =
        |typed: &[&str]| is_narrowed(chaos, &typed.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert!(is_narrowed(&["--store", "redis"]) && is_narrowed(&["--store=redis"]));
    assert!(!is_narrowed(&[]) && !is_narrowed(&["--minutes", "30"]));
    assert!(chaos.programs[0].is_teeth && !chaos.programs[1].is_teeth, "what finds nothing proves nothing");
}
