//! External tools of the tests, installed once in the target folder.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The Chromium of Debian.
pub(crate) const CHROMIUM: &str = "/usr/bin/chromium";

const PLAYWRIGHT: &str = "playwright-core@1.65.0";
const AXE: &str = "axe-core@4.14.0";
const SCHEMATHESIS: &str = "schemathesis==4.32.5";

/// A `node_modules` folder with the packages of the browser tests.
pub(crate) fn browser_modules() -> PathBuf {
    assert!(Path::new(CHROMIUM).exists(), "{CHROMIUM} is missing: apt-get install -y chromium");
    let folder = installed(&format!("{PLAYWRIGHT}-{AXE}"), |folder| {
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(folder).args([PLAYWRIGHT, AXE]);
        run(&mut npm, "apt-get install -y nodejs npm");
    });
    folder.join("node_modules")
}

/// The path of schemathesis.
pub(crate) fn schemathesis() -> PathBuf {
    let folder = installed(SCHEMATHESIS, |folder| {
        run(Command::new("python3").args(["-m", "venv"]).arg(folder), "apt-get install -y python3-venv");
        let mut pip = Command::new(folder.join("bin/pip"));
        run(pip.args(["install", "--quiet", SCHEMATHESIS]), "a way to pypi.org is needed");
    });
    folder.join("bin/schemathesis")
}

/// The folder for `name`. `install` fills it once; a marker file is written after it has succeeded.
fn installed(name: &str, install: impl FnOnce(&Path)) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let built = test.ancestors().nth(3).expect("a test is in TARGET/PROFILE/deps");
    let folder = built.join("test-tools").join(name.replace(['@', '='], "-"));
    let mark = folder.join("installed");
    if !mark.exists() {
        std::fs::create_dir_all(&folder).unwrap();
        install(&folder);
        std::fs::write(mark, name).unwrap();
    }
    folder
}

fn run(command: &mut Command, missing: &str) {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; {missing}"));
    assert!(done.status.success(), "{command:?}: {}; {missing}", String::from_utf8_lossy(&done.stderr));
}
