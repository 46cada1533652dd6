//! The planted defects apply to the sources.

use std::collections::HashSet;
use std::path::Path;

use hapax_model::teeth;

#[test]
fn every_defect_applies_to_its_file() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    teeth::all().for_each(|tooth| drop(tooth.apply(&workspace).unwrap()));
}

#[test]
fn defects_have_unique_names_and_expected_violations() {
    let names: HashSet<_> = teeth::all().map(|tooth| tooth.name).collect();
    assert_eq!(names.len(), teeth::all().count());
    assert!(teeth::TEETH.len() >= 16 && teeth::ENGINE_TEETH.len() >= 8);
    assert!(teeth::all().all(|tooth| !tooth.breaks.is_empty()));
}
