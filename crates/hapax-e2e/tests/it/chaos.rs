//! A slice of the proof under faults, and that it notices lies; `cargo xtask prove chaos` runs more of the same.

use std::path::Path;
use std::process::Command;

use hapax_e2e::chaos::teeth::TEETH;

/// Runs the proof for a moment: whether it was content, and what it printed.
fn proved(flags: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_prove_chaos"));
    let output = command.args(flags).output().expect("the proof starts");
    let printed = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(printed).expect("it prints text"))
}

/// A few faults of each kind.
const FEW: [&str; 10] =
    ["--kills", "2", "--pauses", "2", "--cuts", "6", "--restarts", "2", "--clock-steps", "2"];

#[test]
fn faults_double_and_lose_nothing_and_leave_nothing_stuck() {
    let (is_content, printed) = proved(&[&FEW[..], &["--store", "file,redis", "--requests", "640"]].concat());
    assert!(is_content, "{printed}");
    assert_eq!(printed.matches("640 requests with 128 keys").count(), 2, "{printed}");
    for goal in ["file-doubles", "file-lost", "redis-doubles", "redis-lost", "redis-wrong", "redis-stuck"] {
        assert!(printed.contains(&format!("goal chaos-{goal} measured 0 target 0 ok")), "{printed}");
    }
}

#[test]
fn what_is_not_promised_is_printed_and_no_goal() {
    let flags = ["--store", "redis-everysec", "--requests", "640", "--kills", "1", "--pauses", "0"];
    let flags = [&flags[..], &["--cuts", "0", "--restarts", "1", "--clock-steps", "0"]].concat();
    let (is_content, printed) = proved(&flags);
    assert!(is_content, "{printed}");
    assert!(printed.contains("doubles: ") && printed.contains("(not promised; "), "{printed}");
    assert!(!printed.contains("goal chaos-redis-everysec-doubles"), "{printed}");
    assert!(printed.contains("goal chaos-redis-everysec-wrong measured 0 target 0 ok"), "{printed}");
}

#[test]
fn a_service_or_an_account_that_lies_is_found_out() {
    let none = ["--kills", "0", "--pauses", "0", "--cuts", "0", "--restarts", "0", "--clock-steps", "0"];
    for (kind, lie) in [("doubles", "doubled"), ("wrong", "falsified"), ("wrong", "forgotten")] {
        let flags = ["--store", "file", "--requests", "320", "--lie", lie];
        let (is_content, printed) = proved(&[&flags[..], &none].concat());
        let goal = format!("goal chaos-file-{kind} measured 1 target 0 short");
        assert!(!is_content && printed.contains(&goal), "{lie}: {printed}");
        assert!(printed.contains(&format!("violated {kind} file: key 9")), "{lie}: {printed}");
    }
}

#[test]
fn every_defect_still_fits_its_file() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let misfits: Vec<_> = TEETH
        .iter()
        .filter_map(|tooth| tooth.apply(&workspace).err())
        .map(|error| error.to_string())
        .collect();
    assert!(misfits.is_empty(), "{}", misfits.join("\n"));
}
