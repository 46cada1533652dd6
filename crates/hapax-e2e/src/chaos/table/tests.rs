use super::Row;
use crate::chaos::{Doses, Setting};
use crate::witness::Report;

const DOSES: Doses =
    Doses { kills: 100, pauses: 50, cuts: 40, restarts: 10, pooler_restarts: 5, moves: 3, clock_steps: 0 };

fn row(setting: Setting, report: Report) -> Row {
    let mut row = Row::new(setting);
    row.add(DOSES, report);
    row
}

fn damaged() -> Report {
    let one = || vec!["key 1".to_owned()];
    Report { doubles: one(), lost: one(), wrong: one(), stuck: one(), ..Report::default() }
}

fn lines(row: &Row) -> Vec<String> {
    row.goals().iter().map(ToString::to_string).collect()
}

#[test]
fn what_is_promised_is_a_goal() {
    let expected = ["doubles", "lost", "wrong", "stuck"];
    let clean = row(Setting::Redis, Report::default());
    assert_eq!(lines(&clean), expected.map(|kind| format!("goal chaos-redis-{kind} measured 0 target 0 ok")));
    assert!(clean.violations().is_empty());
    let damaged = row(Setting::Redis, damaged());
    assert_eq!(
        lines(&damaged),
        expected.map(|kind| format!("goal chaos-redis-{kind} measured 1 target 0 short"))
    );
    assert_eq!(damaged.violations(), expected.map(|kind| format!("violated {kind} redis: key 1")));
}

#[test]
fn what_is_not_promised_is_shown_all_the_same() {
    let row = row(Setting::RedisSentinel, damaged());
    let goals =
        ["wrong", "stuck"].map(|kind| format!("goal chaos-redis-sentinel-{kind} measured 1 target 0 short"));
    assert_eq!(lines(&row), goals);
    assert_eq!(row.violations().len(), 2);
    assert!(row.to_string().contains("doubles: 1 (not promised; 1 in 200 faults: 0.0050 for each)"), "{row}");
}

#[test]
fn none_in_many_is_a_bound_and_not_a_zero() {
    let mut row = row(Setting::Redis, Report::default());
    assert!(row.to_string().contains("none in 200 faults: below 0.0150"), "{row}");
    row.add(DOSES, Report::default());
    assert!(row.to_string().contains("none in 400 faults: below 0.0075"), "{row}");
    assert!(Row::new(Setting::Redis).to_string().contains("nothing was done"));
}

#[test]
fn a_store_is_not_credited_with_crashes_of_what_it_does_not_have() {
    assert!(row(Setting::File, Report::default()).to_string().contains("none in 190 faults"));
    let pooled = row(Setting::PostgresPooled, Report::default()).to_string();
    assert!(pooled.contains("10 crashes of the server, 5 crashes of the pooler"), "{pooled}");
    assert!(pooled.contains("none in 205 faults"), "{pooled}");
}
