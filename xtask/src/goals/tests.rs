use anyhow::{Result, anyhow};

use super::Goals;

fn judged(output: &[&str], expected: &[&str]) -> Result<(), String> {
    ended(Ok(()), output, expected)
}

fn ended(ended: Result<()>, output: &[&str], expected: &[&str]) -> Result<(), String> {
    let mut goals = Goals::default();
    output.iter().for_each(|line| goals.read(line));
    goals.check(ended, expected).map_err(|error| error.to_string())
}

#[test]
fn other_output_around_goals_is_ignored() {
    let output = ["table", "goal file-pairs measured 3.4 x target 3.0 x ok", "  goal indented is no goal"];
    assert_eq!(judged(&output, &["file-pairs"]), Ok(()));
}

#[test]
fn a_short_goal_is_named_in_the_error() {
    let output = ["goal a measured 1 target 1 ok", "goal b measured 1 target 2 short"];
    assert_eq!(judged(&output, &["a"]), Err("short of the goal: b".to_owned()));
}

#[test]
fn a_missing_goal_is_an_error() {
    let output = ["goal a measured 1 target 1 ok"];
    assert_eq!(judged(&output, &["a", "b"]), Err("no goal line was printed for b".to_owned()));
    assert!(judged(&[], &["a"]).is_err());
}

#[test]
fn a_malformed_goal_line_is_an_error() {
    for line in [
        "goal a measured 1 target 1",
        "goal a measured 1 target 1 fine",
        "goal a measured  target 1 ok",
        "goal a measured 1 ok",
        "goal two words measured 1 target 1 ok",
    ] {
        let error = judged(&[line], &[]).unwrap_err();
        assert!(error.starts_with("unreadable goal line"), "{line}: {error}");
    }
}

#[test]
fn a_failed_program_is_reported_unless_a_goal_is_short() {
    let bad = || Err(anyhow!("ended with 101"));
    assert_eq!(ended(bad(), &[], &["a"]), Err("ended with 101".to_owned()));
    assert_eq!(ended(bad(), &["goal a measured 1 target 1 ok"], &["a"]), Err("ended with 101".to_owned()));
    let short = ["goal a measured 1 target 2 short"];
    assert_eq!(ended(bad(), &short, &["a"]), Err("short of the goal: a".to_owned()));
}
