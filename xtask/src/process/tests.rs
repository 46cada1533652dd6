use super::*;

const AMPLE: Duration = Duration::from_secs(60);

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

#[test]
fn reads_both_streams_to_the_end() {
    let mut seen = Vec::new();
    run(&mut shell("echo one; echo two >&2; printf three"), AMPLE, |line| seen.push(line.to_owned()))
        .unwrap();
    run_quiet(&mut shell("echo four; echo five >&2"), AMPLE, |line| seen.push(line.to_owned())).unwrap();
    seen.sort();
    assert_eq!(seen, ["five", "four", "one", "three", "two"]);
}

#[test]
fn a_nonzero_exit_code_is_an_error_that_names_the_command() {
    let error = run(&mut shell("exit 3"), AMPLE, |_| {}).unwrap_err().to_string();
    assert!(error.contains("`sh -c exit 3` failed: ") && error.contains("status: 3"), "{error}");
}

#[test]
fn a_program_is_killed_at_its_time_limit() {
    let mut endless = Command::new("sleep");
    let error = run(endless.arg("600"), Duration::from_millis(20), |_| {}).unwrap_err().to_string();
    assert!(error.contains("still running"), "{error}");
}

#[test]
fn a_missing_program_is_named_in_the_error() {
    let error = run(&mut Command::new("no-such-program"), AMPLE, |_| {}).unwrap_err().to_string();
    assert!(error.contains("no-such-program"), "{error}");
    assert!(!succeeds(&mut Command::new("no-such-program")));
}
