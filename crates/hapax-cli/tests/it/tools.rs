//! Third-party programs: a test whose program is missing fails with the command that installs it.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

use crate::binary::started;

/// The prefixes of install commands in a guide page.
const INSTALLS: [&str; 3] = ["npm install ", "python3 -m venv ", ".venv/bin/pip install "];

/// Fails unless `program` is found, which the Debian `packages` contain.
#[track_caller]
pub(crate) fn needs(program: &str, packages: &str) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    assert!(is_there, "{program} is missing: apt-get install -y {packages}");
}

/// A folder in the target directory that outlives a test.
pub(crate) fn folder(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let built = test.ancestors().nth(3).expect("a test is in TARGET/PROFILE/deps");
    let folder = built.join("test-tools").join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A folder with the packages that the guide page `name` installs, so that versions are pinned there only. A marker file
/// contains the commands that have succeeded.
pub(crate) fn installed_as_in_guide(name: &str) -> PathBuf {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide");
    let page = fs::read_to_string(format!("{page}/{name}.md")).unwrap();
    let lines = page.lines().filter(|line| INSTALLS.iter().any(|begin| line.starts_with(begin)));
    let lines = lines.collect::<Vec<_>>().join("\n");
    assert!(!lines.is_empty(), "the page about {name} installs nothing");
    let folder = folder(&format!("origin-{name}"));
    // Tests in other processes install the same packages.
    let lock = File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    let mark = folder.join("installed");
    if fs::read_to_string(&mark).ok().as_deref() != Some(&lines) {
        let mut shell = Command::new("bash");
        let status = started(shell.args(["-ec", &lines]).current_dir(&folder)).wait().unwrap();
        assert!(status.success(), "{status}:\n{lines}\nnpmjs.com and pypi.org must be reachable.");
        fs::write(mark, lines).unwrap();
    }
    folder
}

#[test]
#[should_panic(expected = "no-such-program is missing: apt-get install -y its-package")]
fn a_missing_program_is_reported_with_its_install_command() {
    needs("sh", "dash");
    needs("no-such-program", "its-package");
}
