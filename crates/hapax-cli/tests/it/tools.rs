//! Programs from elsewhere: each is there, or the test that needs it fails with the line that installs it.

/// Fails unless `program` is found; `packages` are what Debian has it in.
#[track_caller]
pub(crate) fn needs(program: &str, packages: &str) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    assert!(is_there, "{program} is missing: apt-get install -y {packages}");
}

#[test]
#[should_panic(expected = "no-such-program is missing: apt-get install -y its-package")]
fn what_is_missing_is_named_with_the_line_that_installs_it() {
    needs("sh", "dash");
    needs("no-such-program", "its-package");
}
