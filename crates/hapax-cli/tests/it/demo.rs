//! `hapax serve --demo`: the printed commands are run in a shell, with curl.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::binary::{command, started};
use crate::fixture::Fixture;
#[cfg(unix)]
use crate::guides::{blocks, matches};
use crate::sidecar::{Sidecar, ask};

/// The output of a shell command.
fn typed(line: &str) -> String {
    let mut shell = Command::new("/bin/sh");
    let child = started(shell.args(["-c", line]).stdout(Stdio::piped()).stderr(Stdio::piped()));
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {stderr} (curl 7.82 or newer is needed: apt-get install curl)");
    String::from_utf8(output.stdout).unwrap()
}

/// Every line of `promise` is in the output.
#[cfg(unix)]
#[track_caller]
fn promised<'a>(promise: impl IntoIterator<Item = &'a str>, printed: &[String]) {
    for line in promise {
        assert!(printed.iter().any(|found| matches(line, found)), "{line:?} is not in {printed:#?}");
    }
}

/// The line without the random end of its key.
#[cfg(unix)]
fn without_key(line: &str) -> String {
    let (before, rest) = line.split_once("Idempotency-Key: ").unwrap();
    let (key, after) = rest.split_once('\'').unwrap();
    format!("{before}{}{after}", key.split('-').next().unwrap())
}

#[test]
#[cfg(unix)]
fn the_readme_shows_the_commands_and_their_output() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let shown: Vec<&str> =
        blocks(&page).filter(|block| block.language == "console").map(|block| block.code).collect();
    let [start, tries @ ..] = &shown[..] else { panic!("{shown:?}") };
    let fixture = Fixture::bare();
    let sidecar = Sidecar::start(&fixture, &["--demo"]);
    let typical = |text: &str| {
        let text = text.replace(&sidecar.address().to_string(), "127.0.0.1:8080");
        text.replace(&sidecar.admin().to_string(), "127.0.0.1:8081")
    };
    let [listen, console] = ["listen", "console"].map(|part| typical(sidecar.start[part].as_str().unwrap()));
    let (installed, printed) = start.split_once("$ hapax serve --demo\n").unwrap();
    assert_eq!(installed, "$ cargo install --locked --path crates/hapax-cli\n");
    for line in [format!("hapax listens on {listen}"), format!("the console is at {console}")] {
        assert!(printed.contains(&line), "{line} is not in {printed}");
    }
    let lines = sidecar.start["tries"].as_array().unwrap();
    assert_eq!(tries.len(), lines.len());
    for (shown, line) in tries.iter().zip(lines) {
        let shown = shown.replace(" \\\n    ", " ");
        let (command, printed) = shown.split_once('\n').unwrap();
        let line = line.as_str().unwrap();
        assert_eq!(without_key(command), format!("$ {}", without_key(&typical(line))));
        let found: Vec<String> = typed(line).lines().map(str::to_owned).collect();
        promised(printed.lines().filter(|line| !line.is_empty()), &found);
    }
}

#[test]
#[cfg(unix)]
fn the_printed_commands_show_replay_mismatch_conflict_and_uncertain() {
    let fixture = Fixture::bare();
    let sidecar = Sidecar::start(&fixture, &["--demo"]);
    let lines: Vec<&str> =
        sidecar.start["tries"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    let [replay, mismatch, conflict, uncertain] = lines[..] else { panic!("{lines:?}") };

    let printed = typed(replay);
    assert_eq!(printed.matches("HTTP/1.1 201 ").count(), 2, "{printed}");
    assert_eq!(printed.matches("{\"id\":1,\"item\":\"book\"}").count(), 2, "{printed}");
    assert_eq!(printed.matches("x-idempotent-replayed: true").count(), 1, "{printed}");

    let printed = typed(mismatch);
    assert!(printed.contains("HTTP/1.1 422 ") && printed.contains("/errors/key-reused"), "{printed}");

    let printed = typed(conflict);
    assert!(printed.contains("HTTP/1.1 409 ") && printed.contains("/errors/in-progress"), "{printed}");
    assert!(printed.contains("HTTP/1.1 201 "), "{printed}");

    let printed = typed(uncertain);
    assert!(printed.contains("HTTP/1.1 502 ") && printed.contains("HTTP/1.1 409 "), "{printed}");
    assert_eq!(printed.matches("\"type\":\"https://hapax.dev/errors/uncertain\"").count(), 2, "{printed}");

    // One for each command that can create one.
    assert_eq!(ask(sidecar.address(), "GET /orders", "").json()["created"], 3);
    assert_eq!(ask(sidecar.address(), "GET /orders/1", "").json()["item"], "book");
    assert_eq!(ask(sidecar.address(), "GET /orders/99", "").status(), 404);
}

#[test]
fn a_failed_order_runs_again_under_the_same_key() {
    let fixture = Fixture::bare();
    let sidecar = Sidecar::start(&fixture, &["--demo"]);
    let order = || ask(sidecar.address(), "POST /orders/flaky\nIdempotency-Key: k", "{}");
    assert_eq!(order().status(), 503);
    assert_eq!(order().status(), 201);
    assert_eq!(order().header("x-idempotent-replayed"), Some("true"));
}

#[test]
fn the_start_is_printed_as_text() {
    let fixture = Fixture::bare();
    let args = ["serve", "--demo", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let mut typed = command(fixture.path());
    let mut child = started(typed.args(args).stdout(Stdio::piped()).stderr(Stdio::null()));
    let mut printed = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
        printed.push(line);
        if printed.iter().filter(|line| line.starts_with("curl ")).count() == 4 {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(printed[0].starts_with("hapax listens on http://127.0.0.1:"), "{printed:?}");
    assert!(
        printed.iter().any(|line| line.starts_with("the console is at http://127.0.0.1:")),
        "{printed:?}"
    );
    assert_eq!(printed.iter().filter(|line| line.starts_with("# ")).count(), 4, "{printed:?}");
}

#[test]
fn the_start_is_printed_as_json() {
    let fixture = Fixture::bare();
    let sidecar = Sidecar::start(&fixture, &["--demo"]);
    for part in ["listen", "console", "demo"] {
        assert!(sidecar.start[part].as_str().unwrap().starts_with("http://127.0.0.1:"), "{}", sidecar.start);
    }
}
