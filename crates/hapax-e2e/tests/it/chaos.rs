//! A slice of the proof under faults, and of its planted defects; `cargo xtask prove chaos` runs more of the same.

use crate::run_proof;

fn prove(flags: &[&str]) -> (bool, String) {
    run_proof(env!("CARGO_BIN_EXE_prove_chaos"), flags)
}

/// A few faults of each kind.
const FEW: [&str; 10] =
    ["--kills", "2", "--pauses", "2", "--cuts", "6", "--restarts", "2", "--clock-steps", "2"];

#[test]
fn faults_double_and_lose_nothing_and_leave_no_key_stuck() {
    let (is_met, printed) = prove(&[&FEW[..], &["--store", "file,redis", "--requests", "640"]].concat());
    assert!(is_met, "{printed}");
    assert_eq!(printed.matches("640 requests with 128 keys").count(), 2, "{printed}");
    for goal in ["file-doubles", "file-lost", "redis-doubles", "redis-lost", "redis-wrong", "redis-stuck"] {
        assert!(printed.contains(&format!("goal chaos-{goal} measured 0 target 0 ok")), "{printed}");
    }
}

#[test]
fn kinds_that_are_not_promised_are_printed_and_no_goal() {
    let flags = ["--store", "redis-everysec", "--requests", "640", "--kills", "1", "--pauses", "0"];
    let flags = [&flags[..], &["--cuts", "0", "--restarts", "1", "--clock-steps", "0"]].concat();
    let (is_met, printed) = prove(&flags);
    assert!(is_met, "{printed}");
    assert!(printed.contains("doubles: ") && printed.contains("(not promised; "), "{printed}");
    assert!(!printed.contains("goal chaos-redis-everysec-doubles"), "{printed}");
    assert!(printed.contains("goal chaos-redis-everysec-wrong measured 0 target 0 ok"), "{printed}");
}

#[test]
fn a_planted_defect_of_the_service_or_its_log_is_found() {
    let none = ["--kills", "0", "--pauses", "0", "--cuts", "0", "--restarts", "0", "--clock-steps", "0"];
    for (kind, defect) in [("doubles", "doubled"), ("wrong", "falsified"), ("wrong", "forgotten")] {
        let flags = ["--store", "file", "--requests", "320", "--defect", defect];
        let (is_met, printed) = prove(&[&flags[..], &none].concat());
        let goal = format!("goal chaos-file-{kind} measured 1 target 0 short");
        assert!(!is_met && printed.contains(&goal), "{defect}: {printed}");
        assert!(printed.contains(&format!("violated {kind} file: key 9")), "{defect}: {printed}");
    }
}
