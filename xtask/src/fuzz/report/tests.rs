use anyhow::anyhow;

use super::*;

const WRITTEN: &str = "artifact_prefix='crashes/'; Test unit written to crashes/crash-a1ed";
const TRIED: &str = "stat::number_of_executed_units: 32079";

fn judged(lines: &[&str], ended: Result<()>) -> Result<Ran, String> {
    let mut report = Report::default();
    lines.iter().for_each(|line| report.read(line));
    report.judge(ended).map_err(|error| error.to_string())
}

#[test]
fn a_run_to_the_end_tells_how_much_it_tried() {
    let lines = ["Done 32079 runs in 16 second(s)", TRIED, "stat::peak_rss_mb:              32"];
    assert_eq!(judged(&lines, Ok(())), Ok(Ran::Through { executions: 32_079 }));
}

#[test]
fn a_crash_names_its_input() {
    let crashed = judged(&["SUMMARY: libFuzzer: deadly signal", WRITTEN, TRIED], Err(anyhow!("77")));
    assert_eq!(crashed, Ok(Ran::Crashed { executions: 32_079, input: "crashes/crash-a1ed".to_owned() }));
}

#[test]
fn the_story_of_a_crash_is_shown_and_chatter_is_not() {
    for shown in ["thread '<unnamed>' panicked at fuzz_targets/problem.rs:3:116:", WRITTEN, ""] {
        assert!(is_for_people(shown), "{shown}");
    }
    for hidden in [
        TRIED,
        "INFO: Seed: 101822655",
        "\"\\001?\" # Uses: 520",
        "###### End of recommended dictionary. ######",
    ] {
        assert!(!is_for_people(hidden), "{hidden}");
    }
}

#[test]
fn a_run_that_tried_nothing_is_a_failure() {
    assert_eq!(judged(&[], Ok(())), Err("it executed nothing".to_owned()));
    assert_eq!(judged(&["stat::number_of_executed_units: 0"], Ok(())), Err("it executed nothing".to_owned()));
}

#[test]
fn a_death_without_an_input_is_a_failure_and_no_crash() {
    assert_eq!(judged(&[TRIED], Err(anyhow!("ended with 1"))), Err("ended with 1".to_owned()));
}
