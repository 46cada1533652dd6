//! A slice of the proof of transactions; `cargo xtask prove transactions` runs more of the same.

use crate::run_proof;

/// Kills each of process, server and pooler at least once; then every planted defect must be found.
fn prove(mode: &str) {
    let flags = ["--rounds", "3", "--modes", mode];
    let (is_met, printed) = run_proof(env!("CARGO_BIN_EXE_prove_transactions"), &flags);
    assert!(is_met, "{printed}");
    for path in ["direct", "pooler"] {
        assert!(printed.contains(&format!("{mode}, {path}: 120 keys, ")), "{printed}");
    }
    assert!(printed.contains(&format!("{mode}, defect apart: found in round ")), "{printed}");
    for goal in ["doubles", "lost", "wrong", "stuck", "teeth"] {
        assert!(printed.contains(&format!("goal transactions-{goal} measured 0 target 0 ok")), "{printed}");
    }
}

#[test]
fn orders_in_functions_take_effect_once_under_kills() {
    prove("function");
}

#[test]
fn orders_in_handlers_take_effect_once_under_kills() {
    prove("handler");
}
