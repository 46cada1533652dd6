//! A slice of the proof of transactions; `cargo xtask prove transactions` runs more of the same.

use std::process::Command;

/// Each of process, server and pooler is killed at least once; then every planted defect must be found.
fn prove(mode: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_prove_transactions"));
    let output = command.args(["--rounds", "3", "--modes", mode]).output().expect("the proof starts");
    let printed = String::from_utf8([output.stdout, output.stderr].concat()).expect("it prints text");
    assert!(output.status.success(), "{printed}");
    for way in ["direct", "pooler"] {
        assert!(printed.contains(&format!("{mode}, {way}: 120 keys, ")), "{printed}");
    }
    assert!(printed.contains(&format!("{mode}, defect apart: found in round ")), "{printed}");
    for goal in ["doubles", "lost", "wrong", "stuck", "teeth"] {
        assert!(printed.contains(&format!("goal transactions-{goal} measured 0 target 0 ok")), "{printed}");
    }
}

#[test]
fn functions_are_killed_and_happen_once() {
    prove("function");
}

#[test]
fn handlers_are_killed_and_happen_once() {
    prove("handler");
}
