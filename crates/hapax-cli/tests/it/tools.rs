//! Programs from elsewhere: each is there, or the test that needs it fails with the line that installs it.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

use crate::binary::started;

/// What the lines of a guide page that install something begin with.
const INSTALLS: [&str; 3] = ["npm install ", "python3 -m venv ", ".venv/bin/pip install "];

/// Fails unless `program` is found; `packages` are what Debian has it in.
#[track_caller]
pub(crate) fn needs(program: &str, packages: &str) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    assert!(is_there, "{program} is missing: apt-get install -y {packages}");
}

/// A folder beside what cargo builds, for something that outlives a test.
pub(crate) fn folder(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let built = test.ancestors().nth(3).expect("a test is in TARGET/PROFILE/deps");
    let folder = built.join("test-tools").join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A folder with what the guide page `name` installs, so that versions are written there and nowhere else. A mark tells
/// which lines came to their end.
pub(crate) fn installed_as_in_guide(name: &str) -> PathBuf {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide");
    let page = fs::read_to_string(format!("{page}/{name}.md")).unwrap();
    let lines = page.lines().filter(|line| INSTALLS.iter().any(|begin| line.starts_with(begin)));
    let lines = lines.collect::<Vec<_>>().join("\n");
    assert!(!lines.is_empty(), "the page about {name} installs nothing");
    let folder = folder(&format!("origin-{name}"));
    // Tests of other processes install the same.
    let lock = File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    let mark = folder.join("installed");
    if fs::read_to_string(&mark).ok().as_deref() != Some(&lines) {
        let mut shell = Command::new("bash");
        let status = started(shell.args(["-ec", &lines]).current_dir(&folder)).wait().unwrap();
        assert!(status.success(), "{status}:\n{lines}\nA way to npmjs.com and pypi.org is needed.");
        fs::write(mark, lines).unwrap();
    }
    folder
}

#[test]
#[should_panic(expected = "no-such-program is missing: apt-get install -y its-package")]
fn what_is_missing_is_named_with_the_line_that_installs_it() {
    needs("sh", "dash");
    needs("no-such-program", "its-package");
}
