use super::Goals;

fn judged(output: &[&str], expected: &[&str]) -> Result<(), String> {
    let mut goals = Goals::default();
    output.iter().for_each(|line| goals.read(line));
    goals.judge(expected).map_err(|error| error.to_string())
}

#[test]
fn met_goals_pass_whatever_stands_around_them() {
    let output = ["table", "goal file-pairs measured 3.4 x target 3.0 x ok", "  goal indented is no goal"];
    assert_eq!(judged(&output, &["file-pairs"]), Ok(()));
}

#[test]
fn a_short_goal_fails_by_name() {
    let output = ["goal a measured 1 target 1 ok", "goal b measured 1 target 2 short"];
    assert_eq!(judged(&output, &["a"]), Err("short of the goal: b".to_owned()));
}

#[test]
fn a_goal_that_was_never_printed_fails() {
    let output = ["goal a measured 1 target 1 ok"];
    assert_eq!(judged(&output, &["a", "b"]), Err("no goal line was printed for b".to_owned()));
    assert!(judged(&[], &["a"]).is_err());
}

#[test]
fn a_goal_line_of_another_form_fails_instead_of_being_passed_over() {
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
