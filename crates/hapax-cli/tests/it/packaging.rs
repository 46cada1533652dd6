//! Checks the files in `packaging/` with the tools that read them and with the real binary.

mod monitoring;
mod service;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::binary::{Run, hapax, run};
use crate::fixture::Fixture;
use crate::tools::needs;

const COMPOSE: [&str; 3] =
    ["docker/compose.yaml", "docker/compose.redis.yaml", "docker/compose.postgres.yaml"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging")
}

fn text(path: &str) -> String {
    fs::read_to_string(folder().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Runs a program of the Debian package `package`.
fn tool(program: &str, package: &str, args: &[&str]) -> Run {
    needs(program, package);
    run(Command::new(program).args(args))
}

/// The words of `text` with this prefix.
fn words<'a>(text: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_';
    text.split(move |char| !is_part(char)).filter(move |word| word.starts_with(prefix))
}

#[test]
fn every_variable_is_an_option() {
    let fixture = Fixture::bare();
    let options = hapax(fixture.path(), &["check", "--options"]).ended(0).stdout;
    let known: Vec<&str> = words(&options, "HAPAX_").chain(["HAPAX_CONFIG"]).collect();
    for file in ["docker/Dockerfile", "systemd/hapax.service"].iter().chain(&COMPOSE) {
        let text = text(file);
        let mut found = 0;
        for variable in words(&text, "HAPAX_") {
            assert!(known.contains(&variable), "{file}: {variable}");
            found += 1;
        }
        assert!(found > 0, "{file}");
    }
}
