//! Help, version, completions and usage errors.

use std::process::{Command, Stdio};

use crate::binary::{command, hapax, run, started};
use crate::fixture::{DAY, Fixture, HOUR};

#[test]
fn the_version_is_printed() {
    let fixture = Fixture::bare();
    let run = hapax(fixture.path(), &["--version"]).ended(0);
    assert_eq!(run.stdout, format!("hapax {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn the_help_lists_the_exit_codes() {
    let fixture = Fixture::bare();
    let help = hapax(fixture.path(), &["--help"]).ended(0).stdout;
    assert!(help.contains("Exit codes:") && help.contains("HAPAX_STORE_URL"), "{help}");
}

#[test]
fn every_shell_gets_a_completion_script() {
    let fixture = Fixture::bare();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = hapax(fixture.path(), &["completions", shell]).ended(0).stdout;
        assert!(script.contains("settle"), "{shell}");
    }
}

#[test]
fn pages_and_scripts_cannot_be_printed_as_json() {
    let fixture = Fixture::bare();
    for args in
        [&["man", "--json"][..], &["man", "--dir", "pages", "--json"], &["completions", "bash", "--json"]]
    {
        hapax(fixture.path(), args).ended(2);
    }
    assert!(!fixture.path().join("pages").exists());
    let options = hapax(fixture.path(), &["check", "--options", "--json"]).ended(0).json();
    let url =
        options.as_array().unwrap().iter().find(|option| option["variable"] == "HAPAX_STORE_URL").unwrap();
    assert_eq!((&url["section"], &url["name"]), (&"store".into(), &"url".into()));
    assert_eq!(url["default"], "\"file:./hapax-data\"");
}

#[test]
fn errors_about_unknown_arguments_name_the_nearest_one() {
    let fixture = Fixture::bare();
    let run = hapax(fixture.path(), &["recrods"]).ended(2);
    assert!(run.stderr.contains("records"), "{run:?}");
    let run = hapax(fixture.path(), &["records", "list", "--stat", "failed"]).ended(2);
    assert!(run.stderr.contains("--state"), "{run:?}");
    let run = hapax(fixture.path(), &["records", "list", "--state", "done"]).ended(2);
    assert!(run.stderr.contains("in_progress"), "{run:?}");
    let run = hapax(fixture.path(), &["records", "list", "--older-than", "24"]).ended(2);
    assert!(run.stderr.contains("90s, 24h or 7d"), "{run:?}");
    let run = hapax(fixture.path(), &["serve", "--listn", "127.0.0.1:0"]).ended(2);
    assert!(run.stderr.contains("--listen"), "{run:?}");
}

#[test]
fn the_error_about_a_file_option_used_as_a_flag_names_its_section() {
    let fixture = Fixture::bare();
    let run = hapax(fixture.path(), &["serve", "--retension", "1d"]).ended(2);
    assert!(run.stderr.contains("`retention` is set in the configuration file, under [defaults]"), "{run:?}");
    assert!(!run.stderr.contains("--trace-endpoint"), "{run:?}");
    let run = hapax(fixture.path(), &["serve", "--nonsense"]).ended(2);
    assert!(!run.stderr.contains("configuration file"), "{run:?}");
}

#[test]
fn the_error_about_an_unknown_store_names_the_nearest_one() {
    let fixture = Fixture::bare();
    for (url, hint) in [
        ("flie:./data", "did you mean file:"),
        ("memoy:", "did you mean memory:"),
        ("./data", "write file:DIR"),
        ("carrier-pigeon://x", "known stores are"),
        ("file:", "write file:DIR"),
        ("", "write file:DIR"),
    ] {
        let run = hapax(fixture.path(), &["check", "--store", url]).failed(2, "store-url-invalid");
        assert!(run.stderr.contains(hint), "{url}: {run:?}");
    }
}

#[test]
fn a_memory_store_cannot_be_inspected() {
    let fixture = Fixture::bare();
    for command in [&["records", "list"][..], &["records", "show", "00000000"], &["sweep"]] {
        let args = [command, &["--store", "memory:"]].concat();
        let run = hapax(fixture.path(), &args).failed(2, "store-not-shared");
        assert!(run.stderr.contains("empty"), "{run:?}");
    }
}

#[test]
fn errors_are_printed_as_json() {
    let fixture = Fixture::bare();
    let run = hapax(fixture.path(), &["check", "--json"]).ended(5);
    assert_eq!(run.stdout, "");
    let error: serde_json::Value = serde_json::from_str(&run.stderr).unwrap();
    assert_eq!(error["error"]["code"], "store-missing");
    assert!(error["error"]["hint"].as_str().unwrap().contains("--store"));
}

#[test]
fn a_closed_stdout_is_no_failure() {
    let fixture = Fixture::prepared(HOUR, async |prepare| {
        prepare.completed("a", DAY).await;
    });
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut typed = command(fixture.path());
    let child = started(typed.args(["records", "list"]).stdout(writer).stderr(Stdio::piped()));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

/// Lines that start with `$ ` are commands, followed by a line of output.
#[cfg(unix)]
#[test]
fn the_examples_of_the_guide_print_their_output() {
    let fixture = Fixture::bare();
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_hapax"));
    let guide = include_str!("../../../../docs/guide/cli.md");
    let mut examples = 0;
    for (typed, printed) in guide.lines().zip(guide.lines().skip(1)) {
        let Some(typed) = typed.strip_prefix("$ ") else { continue };
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", typed]).current_dir(fixture.path()).env("PATH", binary.parent().unwrap());
        assert_eq!(run(&mut shell).stdout, format!("{printed}\n"), "{typed}");
        examples += 1;
    }
    assert!(examples >= 2);
}

#[test]
fn the_guide_lists_every_exit_code_of_the_help() {
    let fixture = Fixture::bare();
    let help = hapax(fixture.path(), &["--help"]).ended(0).stdout;
    let guide = include_str!("../../../../docs/guide/cli.md");
    let codes =
        help.lines().filter_map(|line| line.strip_prefix("  ")?.split_once("  ")?.0.parse::<u8>().ok());
    let codes: Vec<_> = codes.collect();
    assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6, 7]);
    for code in codes {
        assert!(guide.contains(&format!("\n| {code} | ")), "{code}");
    }
}
