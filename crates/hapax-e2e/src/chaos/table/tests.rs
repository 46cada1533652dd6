use super::Row;
use crate::chaos::{Doses, Setting};
use crate::rig::{Damage, LoadReport};

const DOSES: Doses =
    Doses { kills: 100, pauses: 50, cuts: 40, restarts: 10, pooler_restarts: 5, moves: 3, clock_steps: 0 };

fn row(setting: Setting, report: LoadReport) -> Row {
    let mut row = Row::new(setting);
    row.add(DOSES, report);
    row
}

fn damaged() -> LoadReport {
    let one = || vec!["key 1".to_owned()];
    let damage = Damage { doubles: one(), lost: one(), wrong: one(), stuck: one() };
    LoadReport { damage, ..LoadReport::default() }
}

fn lines(row: &Row) -> Vec<String> {
    row.goals().iter().map(ToString::to_string).collect()
}

#[test]
fn promised_kinds_are_goals() {
    let expected = ["doubles", "lost", "wrong", "stuck"];
    let clean = row(Setting::Redis, LoadReport::default());
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
fn kinds_that_are_not_promised_are_printed_and_no_goal() {
    let row = row(Setting::RedisSentinel, damaged());
    let goals =
        ["wrong", "stuck"].map(|kind| format!("goal chaos-redis-sentinel-{kind} measured 1 target 0 short"));
    assert_eq!(lines(&row), goals);
    assert_eq!(row.violations().len(), 2);
    assert!(row.to_string().contains("doubles: 1 (not promised; 1 in 200 faults: 0.0050 for each)"), "{row}");
}

#[test]
fn no_damage_in_many_faults_is_an_upper_bound() {
    let mut row = row(Setting::Redis, LoadReport::default());
    assert!(row.to_string().contains("none in 200 faults: below 0.0150"), "{row}");
    row.add(DOSES, LoadReport::default());
    assert!(row.to_string().contains("none in 400 faults: below 0.0075"), "{row}");
    assert!(Row::new(Setting::Redis).to_string().contains("no faults were injected"));
}

#[test]
fn only_faults_that_apply_to_the_store_count() {
    assert!(row(Setting::File, LoadReport::default()).to_string().contains("none in 190 faults"));
    let pooled = row(Setting::PostgresPooled, LoadReport::default()).to_string();
    assert!(pooled.contains("10 crashes of the server, 5 crashes of the pooler"), "{pooled}");
    assert!(pooled.contains("none in 205 faults"), "{pooled}");
}
