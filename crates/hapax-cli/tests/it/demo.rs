//! `hapax serve --demo`: what it prints is typed into a shell, with a real client.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::binary::{command, started};
use crate::fixture::Fixture;
use crate::sidecar::{Sidecar, ask};

/// What a line printed.
fn typed(line: &str) -> String {
    let mut shell = Command::new("/bin/sh");
    let child = started(shell.args(["-c", line]).stdout(Stdio::piped()).stderr(Stdio::piped()));
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {stderr} (curl 7.82 or newer is needed: apt-get install curl)");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[cfg(unix)]
fn the_printed_lines_show_replay_mismatch_conflict_and_uncertain() {
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

    // One for each line that may create one.
    assert_eq!(ask(sidecar.address(), "GET /orders", "").json()["created"], 3);
    assert_eq!(ask(sidecar.address(), "GET /orders/1", "").json()["item"], "book");
    assert_eq!(ask(sidecar.address(), "GET /orders/99", "").status(), 404);
}

#[test]
fn what_is_flaky_runs_again_under_the_same_key() {
    let fixture = Fixture::bare();
    let sidecar = Sidecar::start(&fixture, &["--demo"]);
    let order = || ask(sidecar.address(), "POST /orders/flaky\nIdempotency-Key: k", "{}");
    assert_eq!(order().status(), 503);
    assert_eq!(order().status(), 201);
    assert_eq!(order().header("x-idempotent-replayed"), Some("true"));
}

#[test]
fn people_are_told_in_words() {
    let fixture = Fixture::bare();
    let args = ["serve", "--demo", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let mut typed = command(fixture.path());
    let mut child = started(typed.args(args).stdout(Stdio::piped()).stderr(Stdio::null()));
    let mut told = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
        told.push(line);
        if told.iter().filter(|line| line.starts_with("curl ")).count() == 4 {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(told[0].starts_with("hapax listens on http://127.0.0.1:"), "{told:?}");
    assert!(told.iter().any(|line| line.starts_with("the console is at http://127.0.0.1:")), "{told:?}");
    assert_eq!(told.iter().filter(|line| line.starts_with("# ")).count(), 4, "{told:?}");
}

#[test]
fn the_start_says_where_everything_is() {
    let fixture = Fixture::bare();
    let sidecar = Sidecar::start(&fixture, &["--demo"]);
    for part in ["listen", "console", "demo"] {
        assert!(sidecar.start[part].as_str().unwrap().starts_with("http://127.0.0.1:"), "{}", sidecar.start);
    }
}
