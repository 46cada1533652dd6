//! The files of the tree: tracked by git, or untracked and not ignored.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// One text file of the tree.
pub(crate) struct File {
    /// Relative to the root, with `/` between folders.
    pub(crate) path: String,
    /// The content.
    pub(crate) text: String,
}

/// The workspace root, read at run time: the build may be shared with another checkout.
pub(crate) fn root() -> PathBuf {
    let own = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap());
    own.parent().unwrap().to_owned()
}

/// Every text file. Files that are not UTF-8, such as binary fixtures, are skipped.
pub(crate) fn files() -> Vec<File> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
    let paths = String::from_utf8(listed.stdout).unwrap();
    let read = |path: &str| {
        let text = fs::read_to_string(root().join(path)).ok()?;
        Some(File { path: path.to_owned(), text })
    };
    let files: Vec<File> = paths.split_terminator('\0').filter_map(read).collect();
    assert!(files.iter().any(|file| file.path == "Cargo.toml"), "the tree has no Cargo.toml");
    files
}

/// Fails with every violation of `rule` in the tree, one per line.
pub(crate) fn check(rule: impl Fn(&File) -> Vec<String>) {
    let complaints: Vec<String> = files().iter().flat_map(rule).collect();
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// A file for the test of a rule.
pub(crate) fn sample(path: &str, text: &str) -> File {
    File { path: path.to_owned(), text: text.to_owned() }
}
