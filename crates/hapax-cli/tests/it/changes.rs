//! `hapax records settle`, `release` and `delete`.

use hapax::{Done, Hapax, OnceError};
use hapax_core::RecordId;
use serde_json::Value;

use crate::binary::{Run, command, hapax, run};
use crate::fixture::{DAY, Fixture, HOUR, block_on, key_text, no_process_starts};

fn uncertain() -> (Fixture, String) {
    let mut id = None;
    let fixture = Fixture::prepared(HOUR, async |prepare| id = Some(prepare.uncertain("a").await));
    (fixture, id.unwrap().to_string())
}

fn completed() -> (Fixture, String) {
    let mut id: Option<RecordId> = None;
    let fixture = Fixture::prepared(HOUR, async |prepare| id = Some(prepare.completed("a", DAY).await));
    (fixture, id.unwrap().to_string())
}

fn settle(fixture: &Fixture, id: &str, args: &[&str]) -> Run {
    hapax(fixture.path(), &[&["records", "settle", id], args].concat())
}

fn record(fixture: &Fixture, id: &str) -> Value {
    hapax(fixture.path(), &["records", "show", id, "--json", "--payload"]).ended(0).json()["record"].clone()
}

#[test]
fn a_function_receives_the_settled_value() {
    let fixture = Fixture::prepared(HOUR, async |prepare| {
        prepare.uncertain("a").await;
    });
    let key = key_text("a");
    let args = ["records", "settle", "--key", &key, "--applied", "--json-value", "{\"charge\": 7}", "--yes"];
    let run = hapax(fixture.path(), &args).ended(0);
    assert!(run.stdout.contains("settled as applied"), "{run:?}");
    let done = run_charge(&fixture).unwrap();
    assert!(done.replayed);
    assert_eq!(done.value, serde_json::json!({ "charge": 7 }));
}

/// Calls the function of the record, as a retry would.
fn run_charge(fixture: &Fixture) -> Result<Done<Value>, OnceError<std::io::Error>> {
    let work = |_cx| async { Ok::<_, std::io::Error>(Value::from("ran")) };
    let _no_process_starts = no_process_starts();
    block_on(async { Hapax::new(fixture.open()).once("charge", key_text("a")).run(work).await })
}

#[test]
fn a_record_settled_without_a_result_reports_that() {
    let (fixture, id) = uncertain();
    let run = settle(&fixture, &id, &["--applied", "--yes", "--json"]).ended(0);
    assert!(run.stderr.contains("without a result"), "{run:?}");
    let document = run.json();
    assert_eq!(document["done"], "settled as applied");
    assert_eq!(document["record"]["state"], "completed");
    assert_eq!(document["record"]["recorded"]["format"], "not_kept");
    let retried = run_charge(&fixture);
    assert!(matches!(retried, Err(OnceError::ResultUnavailable { .. })), "{retried:?}");
}

#[test]
fn a_result_can_be_text_or_a_file() {
    let (fixture, id) = uncertain();
    settle(&fixture, &id, &["--applied", "--payload", "by hand", "--class", "error", "--yes"]).ended(0);
    let after = record(&fixture, &id);
    assert_eq!(after["state"], "failed");
    assert_eq!(after["recorded"]["format"], "operator");
    assert_eq!(after["recorded"]["payload"], "by hand");
    match run_charge(&fixture) {
        Err(OnceError::PreviouslyFailed(stored)) => assert_eq!(stored.message, "by hand"),
        other => panic!("{other:?}"),
    }

    let (fixture, id) = uncertain();
    std::fs::write(fixture.path().join("result.json"), "[1, 2]").unwrap();
    let args = ["--applied", "--payload-file", "result.json", "--format", "function", "--yes"];
    settle(&fixture, &id, &args).ended(0);
    let after = record(&fixture, &id);
    assert_eq!(after["recorded"]["format"], "function");
    assert_eq!(after["recorded"]["payload"], "[1, 2]");
}

#[test]
fn the_retention_starts_at_the_settlement() {
    let (fixture, id) = uncertain();
    settle(&fixture, &id, &["--applied", "--retention", "2h", "--yes"]).ended(0);
    let after = record(&fixture, &id);
    let span = after["expires_at_ms"].as_u64().unwrap() - after["updated_at_ms"].as_u64().unwrap();
    assert_eq!(span, 7_200_000);
}

#[test]
fn a_result_that_is_not_json_is_refused_for_a_function() {
    let (fixture, id) = uncertain();
    let wrong: [&[&str]; 3] = [
        &["--json-value", "{oops"],
        &["--payload", "oops", "--format", "function"],
        &["--payload-file", "no-such-file"],
    ];
    for args in wrong {
        settle(&fixture, &id, &[&["--applied", "--yes"], args].concat()).failed(2, "input-invalid");
    }
    assert_eq!(record(&fixture, &id)["state"], "uncertain");
}

#[test]
fn not_applied_and_release_release_the_key() {
    let (fixture, id) = uncertain();
    let run = settle(&fixture, &id, &["--not-applied", "--yes"]).ended(0);
    assert!(run.stderr.contains("RUNS THE OPERATION"), "{run:?}");
    assert_eq!(record(&fixture, &id)["state"], "released");
    let retried = run_charge(&fixture).unwrap();
    assert!(!retried.replayed, "{retried:?}");

    let (fixture, id) = uncertain();
    let run = hapax(fixture.path(), &["records", "release", &id[..16], "--yes", "--json"]).ended(0);
    assert_eq!(run.json()["done"], "settled as not applied");
    assert_eq!(record(&fixture, &id)["state"], "released");
}

#[test]
fn a_claim_of_a_dead_process_can_be_settled_at_once() {
    let mut id = None;
    let fixture =
        Fixture::prepared(std::time::Duration::ZERO, async |prepare| id = Some(prepare.claim("a").await.id));
    let id = id.unwrap().to_string();
    let run = settle(&fixture, &id, &["--not-applied", "--yes"]).ended(0);
    assert!(run.stderr.contains("uncertain (restarted)"), "{run:?}");
}

#[test]
fn settled_records_cannot_be_settled_again() {
    let (fixture, id) = completed();
    settle(&fixture, &id, &["--not-applied", "--yes"]).failed(4, "not-uncertain");
    hapax(fixture.path(), &["records", "release", &id, "--yes"]).failed(4, "not-uncertain");
    assert_eq!(record(&fixture, &id)["state"], "completed");
}

#[test]
fn nothing_is_changed_without_confirmation() {
    let (fixture, id) = uncertain();
    let before = record(&fixture, &id);
    let run = settle(&fixture, &id, &["--not-applied"]).failed(4, "not-confirmed");
    assert!(run.stderr.contains("RUNS THE OPERATION"), "the consequence is printed: {run:?}");
    hapax(fixture.path(), &["records", "release", &id]).failed(4, "not-confirmed");
    hapax(fixture.path(), &["records", "delete", &id]).failed(4, "not-confirmed");
    assert_eq!(record(&fixture, &id), before);
}

#[test]
fn a_confirmation_from_a_file_is_refused() {
    let (fixture, id) = uncertain();
    let answer = fixture.path().join("answer");
    std::fs::write(&answer, "yes\n").unwrap();
    let mut release = command(fixture.path());
    release.args(["records", "release", &id]).stdin(std::fs::File::open(answer).unwrap());
    run(&mut release).failed(4, "not-confirmed");
    assert_eq!(record(&fixture, &id)["state"], "uncertain");
}

#[test]
fn a_verdict_is_either_applied_or_not_applied() {
    let (fixture, id) = uncertain();
    let wrong: [&[&str]; 4] = [
        &[],
        &["--applied", "--not-applied"],
        &["--not-applied", "--payload", "x"],
        &["--applied", "--payload", "x", "--json-value", "1"],
    ];
    for args in wrong {
        settle(&fixture, &id, &[&["--yes"], args].concat()).ended(2);
    }
    assert_eq!(record(&fixture, &id)["state"], "uncertain");
}

#[test]
fn a_deleted_record_no_longer_exists() {
    let (fixture, id) = completed();
    let run = hapax(fixture.path(), &["records", "delete", &id, "--yes"]).ended(0);
    assert_eq!(run.stdout, format!("{id}  deleted\n"));
    assert!(run.stderr.contains("RUNS THE OPERATION AGAIN"), "{run:?}");
    hapax(fixture.path(), &["records", "show", &id]).failed(3, "record-missing");
    hapax(fixture.path(), &["records", "delete", &id, "--yes"]).failed(3, "record-missing");
}

#[test]
fn a_deletion_is_printed_as_json() {
    let (fixture, id) = completed();
    let run = hapax(fixture.path(), &["records", "delete", &id, "--yes", "--json"]).ended(0);
    assert_eq!(run.json(), serde_json::json!({ "done": "deleted", "id": id }));
}

#[test]
fn a_store_in_use_is_not_changed_and_the_error_names_its_owner() {
    let (fixture, id) = uncertain();
    let held = fixture.open();
    let commands: [&[&str]; 4] = [
        &["records", "settle", &id, "--not-applied", "--yes"],
        &["records", "release", &id, "--yes"],
        &["records", "delete", &id, "--yes"],
        &["sweep"],
    ];
    for command in commands {
        let run = hapax(fixture.path(), command).failed(5, "store-in-use");
        assert!(run.stderr.contains(&format!("process {}", std::process::id())), "{run:?}");
        assert!(run.stderr.contains("what to do"), "{run:?}");
    }
    assert_eq!(record(&fixture, &id)["state"], "uncertain");
    drop(held);
}
