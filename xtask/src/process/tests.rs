use super::*;

const AMPLE: Duration = Duration::from_secs(60);

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

#[test]
fn both_streams_are_read_to_the_last_line() {
    let mut seen = Vec::new();
    run(&mut shell("echo one; echo two >&2; printf three"), AMPLE, |line| seen.push(line.to_owned()))
        .unwrap();
    run_unshown(&mut shell("echo four; echo five >&2"), AMPLE, |line| seen.push(line.to_owned())).unwrap();
    seen.sort();
    assert_eq!(seen, ["five", "four", "one", "three", "two"]);
}

#[test]
fn another_exit_code_than_zero_is_an_error_that_names_the_command() {
    let error = run(&mut shell("exit 3"), AMPLE, |_| {}).unwrap_err().to_string();
    assert!(error.contains("`sh -c exit 3` ended with") && error.contains('3'), "{error}");
}

#[test]
fn a_program_over_its_limit_is_ended() {
    let mut endless = Command::new("sleep");
    let error = run(endless.arg("600"), Duration::from_millis(20), |_| {}).unwrap_err().to_string();
    assert!(error.contains("still running"), "{error}");
}

#[test]
fn a_program_that_does_not_exist_is_named() {
    let error = run(&mut Command::new("no-such-program"), AMPLE, |_| {}).unwrap_err().to_string();
    assert!(error.contains("no-such-program"), "{error}");
    assert!(!succeeds(&mut Command::new("no-such-program")));
}
