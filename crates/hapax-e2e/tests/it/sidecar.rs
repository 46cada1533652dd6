//! A slice of the sidecar's proof, and that the proof notices lies; `cargo xtask prove sidecar` runs more of the same.

use std::process::Command;

use hapax_e2e::sidecar::unread::{self, Keys};
use hapax_e2e::witness;

/// Runs the proof for a moment: whether it was content, and what it printed.
fn proved(flags: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_prove_sidecar"));
    let output = command.args(["--requests", "600"]).args(flags).output().expect("the proof starts");
    let printed = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(printed).expect("it prints text"))
}

#[test]
fn a_killed_sidecar_doubles_and_loses_nothing_and_leaves_nothing_stuck() {
    let (is_content, printed) = proved(&["--kills", "3"]);
    assert!(is_content, "{printed}");
    assert!(printed.contains("600 requests with 150 keys"), "{printed}");
    assert!(!printed.contains("\n0 keys were uncertain"), "the kills found nothing under way: {printed}");
}

#[test]
fn a_service_or_an_account_that_lies_is_found_out() {
    // A kill could make the key uncertain that a lie is about, and a lie about nothing is none.
    let lies: [(&str, &[&str]); 4] = [
        ("sidecar-doubles", &["--lie", "doubled", "--kills", "2"]),
        ("sidecar-wrong", &["--lie", "falsified", "--kills", "0"]),
        ("sidecar-wrong", &["--lie", "forgotten", "--kills", "0"]),
        ("sidecar-stuck", &["--lie", "endless", "--kills", "0", "--patience", "3"]),
    ];
    for (goal, flags) in lies {
        let (is_content, printed) = proved(flags);
        let short = printed.lines().find(|line| line.starts_with(&format!("goal {goal} ")));
        assert!(!is_content && short.is_some_and(|line| line.ends_with(" short")), "{flags:?}: {printed}");
    }
}

/// Two thousand replays of one large answer, of which no client takes a byte, are one copy of it.
#[test]
fn answers_that_no_client_takes_share_their_memory() {
    const STREAMS: usize = 2_000;
    let unread = unread::run(&witness::beside().unwrap(), STREAMS, Keys::One).unwrap();
    assert_eq!((unread.streams, unread.resets), (STREAMS, 0));
    assert!(unread.peak_bytes < 256 << 20, "{unread:?}");
}
