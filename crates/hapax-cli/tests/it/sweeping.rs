//! `hapax sweep`.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::binary::{command, hapax, started};
use crate::fixture::{DAY, Fixture, Prepare, block_on};

/// Three expired records, one to be dropped and one that stays.
fn due() -> Fixture {
    Fixture::prepared(40 * DAY, async |prepare| {
        for name in ["a", "b", "c"] {
            prepare.completed(name, DAY).await;
        }
        prepare.uncertain("d").await;
        prepare.completed("stays", 90 * DAY).await;
    })
}

#[test]
fn a_sweep_removes_and_counts_expired_records() {
    let fixture = due();
    let run = hapax(fixture.path(), &["sweep", "--batch", "2"]).ended(0);
    assert_eq!(run.stdout, "removed 3 expired, 1 dropped\n");
    assert!(run.stderr.contains("1 record(s) never finished"), "{run:?}");
    let left = hapax(fixture.path(), &["records", "list", "--json"]).ended(0).json();
    assert_eq!(left["records"].as_array().unwrap().len(), 1);
}

#[test]
fn a_sweep_is_printed_as_json() {
    let fixture = due();
    let first = hapax(fixture.path(), &["sweep", "--json"]).ended(0).json();
    assert_eq!(first, serde_json::json!({ "expired": 3, "dropped": 1, "more": false }));
    let second = hapax(fixture.path(), &["sweep", "--json"]).ended(0).json();
    assert_eq!(second, serde_json::json!({ "expired": 0, "dropped": 0, "more": false }));
}

#[cfg(unix)]
#[test]
fn periodic_sweeps_end_on_signals_and_close_the_store_between_rounds() {
    for signal in ["-TERM", "-INT"] {
        let fixture = due();
        let mut typed = command(fixture.path());
        typed.args(["sweep", "--every", "1h"]).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = started(&mut typed);
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "removed 3 expired, 1 dropped\n");
        fixture.open_and_close();
        send_signal(&child, signal);
        assert_eq!(child.wait().unwrap().code(), Some(0), "{signal}");
    }
}

#[cfg(unix)]
#[test]
fn periodic_sweeps_continue_after_a_round_with_the_store_in_use() {
    let fixture = due();
    let mut typed = command(fixture.path());
    typed.args(["sweep", "--every", "5ms"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = started(&mut typed);
    let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
    stdout.next().unwrap().unwrap();
    let held = loop {
        // A round may be running.
        match hapax_store_file::FileStore::open(fixture.store()) {
            Ok(store) => break Prepare { store },
            Err(_) => std::thread::yield_now(),
        }
    };
    assert!(stderr.any(|line| line.unwrap().contains("error[store-in-use]")));
    block_on(held.completed("later", Duration::from_millis(1)));
    drop(held);
    assert!(stdout.any(|line| line.unwrap() == "removed 1 expired, 0 dropped"));
    send_signal(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[cfg(unix)]
fn send_signal(child: &Child, signal: &str) {
    let mut kill = Command::new("kill");
    let status = started(kill.args([signal, &child.id().to_string()])).wait();
    assert!(status.unwrap().success());
}

#[test]
fn a_batch_or_an_interval_of_zero_is_refused() {
    let fixture = due();
    hapax(fixture.path(), &["sweep", "--batch", "0"]).ended(2);
    hapax(fixture.path(), &["sweep", "--every", "0s"]).ended(2);
    hapax(fixture.path(), &["sweep", "--every", "often"]).ended(2);
}
