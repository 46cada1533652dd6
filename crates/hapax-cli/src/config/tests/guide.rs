//! The guide pages: their files are valid, and one lists every option.

use super::*;

const GUIDE: &str = include_str!("../../../../../docs/guide/sidecar.md");

/// The other pages with files for the sidecar.
const PAGES: [&str; 4] = [
    include_str!("../../../../../docs/guide/keys.md"),
    include_str!("../../../../../docs/guide/migrate.md"),
    include_str!("../../../../../docs/guide/modes.md"),
    include_str!("../../../../../docs/guide/troubleshoot.md"),
];

/// The files in a page.
fn files(page: &str) -> Vec<&str> {
    page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn every_file_of_the_guide_is_valid() {
    assert!(files(GUIDE).len() >= 4);
    for page in [GUIDE].into_iter().chain(PAGES) {
        assert!(!files(page).is_empty(), "{page}");
        for file in files(page) {
            assert_eq!(loaded(file).upstream.len(), 1, "{file}");
        }
    }
}

#[test]
fn the_guide_lists_every_option() {
    let (_, listed) = GUIDE.split_once("<!-- hapax check --options -->\n").unwrap();
    assert!(
        listed.trim() == crate::commands::check::options(),
        "replace what follows the mark in docs/guide/sidecar.md by what `hapax check --options` prints"
    );
}
