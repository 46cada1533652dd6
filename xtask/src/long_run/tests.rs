use super::{defaults_unless_typed, find, is_narrowed, list};
use crate::catalogue::{BENCHES, PROOFS};

#[test]
fn list_has_one_line_per_entry() {
    let list = list(PROOFS);
    assert_eq!(list.lines().count(), PROOFS.len());
    assert!(PROOFS.iter().all(|entry| list.contains(entry.name) && list.contains(entry.about)));
}

#[test]
fn an_unknown_name_is_an_error_with_hint_and_list() {
    let error = find(BENCHES, "bench", "stor").unwrap_err().to_string();
    assert!(error.starts_with("unknown bench `stor`: did you mean `store`?"), "{error}");
    assert!(error.contains("engine"), "{error}");
}

#[test]
fn a_typed_flag_replaces_the_default_flag() {
    let own = ["--executors", "3"];
    let with = |typed: &[&str]| {
        let typed: Vec<String> = typed.iter().map(|flag| (*flag).to_owned()).collect();
        defaults_unless_typed(&own, &typed).len()
    };
    assert_eq!(with(&[]), 2);
    assert_eq!(with(&["--mode", "amo"]), 2);
    assert_eq!(with(&["--executors", "2"]), 0);
    assert_eq!(with(&["--executors=2"]), 0);
}

#[test]
fn goals_are_not_required_when_the_run_is_narrowed() {
    let chaos = find(PROOFS, "prove", "chaos").unwrap();
    let is_narrowed =
        |typed: &[&str]| is_narrowed(chaos, &typed.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert!(is_narrowed(&["--store", "redis"]) && is_narrowed(&["--store=redis"]));
    assert!(!is_narrowed(&[]) && !is_narrowed(&["--minutes", "30"]));
    assert!(
        chaos.programs[0].is_teeth && !chaos.programs[1].is_teeth,
        "the mutation test runs before the proof"
    );
}
