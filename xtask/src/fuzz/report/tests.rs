use anyhow::anyhow;

use super::*;

const WRITTEN: &str = "artifact_prefix='crashes/'; Test unit written to crashes/crash-a1ed";
const TRIED: &str = "stat::number_of_executed_units: 32079";

fn judged(lines: &[&str], ended: Result<()>) -> Result<FuzzRun, String> {
    let mut report = Report::default();
    lines.iter().for_each(|line| report.read(line));
    report.classify(ended).map_err(|error| error.to_string())
}

#[test]
fn a_completed_run_reports_its_executions() {
    let lines = ["Done 32079 runs in 16 second(s)", TRIED, "stat::peak_rss_mb:              32"];
    assert_eq!(judged(&lines, Ok(())), Ok(FuzzRun::Completed { executions: 32_079 }));
}

#[test]
fn a_crash_reports_its_input() {
    let crashed = judged(&["SUMMARY: libFuzzer: deadly signal", WRITTEN, TRIED], Err(anyhow!("77")));
    assert_eq!(crashed, Ok(FuzzRun::Crashed { executions: 32_079, input: "crashes/crash-a1ed".to_owned() }));
}

#[test]
fn shows_crash_reports_and_hides_libfuzzer_noise() {
    for shown in ["thread '<unnamed>' panicked at fuzz_targets/problem.rs:3:116:", WRITTEN, ""] {
        assert!(is_worth_showing(shown), "{shown}");
    }
    for hidden in [
        TRIED,
        "INFO: Seed: 101822655",
        "\"\\001?\" # Uses: 520",
        "###### End of recommended dictionary. ######",
    ] {
        assert!(!is_worth_showing(hidden), "{hidden}");
    }
}

#[test]
fn a_run_without_executions_is_an_error() {
    assert_eq!(judged(&[], Ok(())), Err("no input was executed".to_owned()));
    assert_eq!(
        judged(&["stat::number_of_executed_units: 0"], Ok(())),
        Err("no input was executed".to_owned())
    );
}

#[test]
fn a_failed_run_without_an_input_is_an_error() {
    assert_eq!(judged(&[TRIED], Err(anyhow!("ended with 1"))), Err("ended with 1".to_owned()));
}
