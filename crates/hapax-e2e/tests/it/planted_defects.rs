//! The planted defects fit the sources, and every rule that those of the HTTP layer break has a case.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use hapax_e2e::{chaos, http_teeth};
use hapax_testkit::http_suite;

#[test]
fn every_defect_fits_its_file() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let defects = http_teeth::TEETH.iter().chain(chaos::teeth::TEETH);
    let misfits: Vec<_> =
        defects.filter_map(|defect| defect.apply(&workspace).err()).map(|error| error.to_string()).collect();
    assert!(misfits.is_empty(), "{}", misfits.join("\n"));
}

#[test]
fn names_are_unique() {
    let names: HashSet<_> = http_teeth::TEETH.iter().map(|defect| defect.name).collect();
    assert_eq!(names.len(), http_teeth::TEETH.len());
}

#[test]
fn every_broken_rule_has_a_case() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/cases/http");
    let rules: BTreeSet<_> = http_suite::load(&cases).unwrap().into_iter().map(|case| case.rule).collect();
    for rule in http_teeth::TEETH.iter().flat_map(|defect| defect.breaks) {
        assert!(rules.contains(*rule), "{rule}");
    }
}
