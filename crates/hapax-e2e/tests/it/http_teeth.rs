//! The list of defects in the HTTP layer fits the sources, and leaves out no rule that has a case.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use hapax_e2e::http_teeth;
use hapax_testkit::http_suite;

#[test]
fn every_defect_still_fits_its_file() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let misfits: Vec<_> = http_teeth::all()
        .filter_map(|tooth| tooth.apply(&workspace).err())
        .map(|error| error.to_string())
        .collect();
    assert!(misfits.is_empty(), "{}", misfits.join("\n"));
}

#[test]
fn names_are_unique() {
    let names: HashSet<_> = http_teeth::all().map(|tooth| tooth.name).collect();
    assert_eq!(names.len(), http_teeth::all().count());
}

#[test]
fn every_rule_with_a_case_has_a_defect() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/cases/http");
    let rules: BTreeSet<_> = http_suite::load(&cases).unwrap().into_iter().map(|case| case.rule).collect();
    let broken: BTreeSet<_> =
        http_teeth::all().flat_map(|tooth| tooth.breaks).map(|rule| (*rule).to_owned()).collect();
    assert_eq!(rules, broken);
}
