//! A slice of the sidecar's proof, and of its planted defects; `cargo xtask prove sidecar` runs more of the same.

use hapax_e2e::rig::program_beside;
use hapax_e2e::sidecar::unread::{self, Keys};

use crate::run_proof;

fn prove(flags: &[&str]) -> (bool, String) {
    run_proof(env!("CARGO_BIN_EXE_prove_sidecar"), &[&["--requests", "600"], flags].concat())
}

#[test]
fn a_killed_sidecar_doubles_and_loses_nothing_and_leaves_no_key_stuck() {
    let (is_met, printed) = prove(&["--kills", "3"]);
    assert!(is_met, "{printed}");
    assert!(printed.contains("600 requests with 150 keys"), "{printed}");
    assert!(!printed.contains("\n0 keys were uncertain"), "the kills hit no request in flight: {printed}");
}

#[test]
fn a_planted_defect_of_the_service_or_its_log_is_found() {
    // Without kills, where one could make the key uncertain that the defect is about and so hide the defect.
    let defects: [(&str, &[&str]); 4] = [
        ("sidecar-doubles", &["--defect", "doubled", "--kills", "2"]),
        ("sidecar-wrong", &["--defect", "falsified", "--kills", "0"]),
        ("sidecar-wrong", &["--defect", "forgotten", "--kills", "0"]),
        ("sidecar-stuck", &["--defect", "endless", "--kills", "0", "--patience", "3"]),
    ];
    for (goal, flags) in defects {
        let (is_met, printed) = prove(flags);
        let short = printed.lines().find(|line| line.starts_with(&format!("goal {goal} ")));
        assert!(!is_met && short.is_some_and(|line| line.ends_with(" short")), "{flags:?}: {printed}");
    }
}

/// Two thousand unread replays of one large response share one copy of it.
#[test]
fn unread_replays_share_their_memory() {
    const STREAMS: usize = 2_000;
    let unread = unread::run(&program_beside().unwrap(), STREAMS, Keys::One).unwrap();
    assert_eq!((unread.streams, unread.resets), (STREAMS, 0));
    assert!(unread.peak_bytes < 256 << 20, "{unread:?}");
}
