//! The list of defects in the HTTP layer fits the sources, and every rule that it names has a case.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use hapax_e2e::http_teeth::TEETH;
use hapax_testkit::http_suite;

#[test]
fn every_defect_still_fits_its_file() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let misfits: Vec<_> = TEETH
        .iter()
        .filter_map(|tooth| tooth.apply(&workspace).err())
        .map(|error| error.to_string())
        .collect();
    assert!(misfits.is_empty(), "{}", misfits.join("\n"));
}

#[test]
fn names_are_unique() {
    let names: HashSet<_> = TEETH.iter().map(|tooth| tooth.name).collect();
    assert_eq!(names.len(), TEETH.len());
}

#[test]
fn every_broken_rule_has_a_case() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/cases/http");
    let rules: BTreeSet<_> = http_suite::load(&cases).unwrap().into_iter().map(|case| case.rule).collect();
    for rule in TEETH.iter().flat_map(|tooth| tooth.breaks) {
        assert!(rules.contains(*rule), "{rule}");
    }
}
