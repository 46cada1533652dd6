//! The guide is complete: it lists every option, preset and problem.

use hapax::http::{Code, Dialect, Settings};

const GUIDE: &str = include_str!("../../../../../docs/guide/http.md");

/// The rows of the table under this heading, by the content of their first cell.
fn rows(heading: &str) -> Vec<&'static str> {
    let (_, section) = GUIDE.split_once(&format!("## {heading}\n")).expect("the guide has this heading");
    let section = section.split("\n## ").next().unwrap_or(section);
    let cells = section.lines().filter_map(|line| line.strip_prefix("| `")?.split(" |").next());
    cells.flat_map(|cell| cell.split(['`', ',', ' ']).filter(|word| !word.is_empty())).collect()
}

/// All options of a route, from the error of their parser.
fn options() -> Vec<String> {
    let error = serde_json::from_str::<Settings>(r#"{ "no such option": 0 }"#).unwrap_err().to_string();
    let (_, expected) = error.split_once("expected one of ").expect("the error lists the options");
    expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_guide_lists_exactly_the_options() {
    let mut options = options();
    assert!(options.len() > 50, "{options:?}");
    let mut listed = rows("All options");
    options.sort_unstable();
    listed.sort_unstable();
    assert_eq!(listed, options);
}

#[test]
fn every_preset_is_in_the_guide() {
    assert_eq!(rows("Presets"), Dialect::ALL.map(Dialect::name));
}

#[test]
fn every_problem_is_in_the_guide() {
    let mut listed = rows("Refusals");
    let mut codes: Vec<_> = Code::ALL.iter().map(|code| code.name()).collect();
    // Only a sidecar has an origin.
    codes.retain(|code| *code != "upstream-unavailable");
    listed.sort_unstable();
    codes.sort_unstable();
    assert_eq!(listed, codes);
}
