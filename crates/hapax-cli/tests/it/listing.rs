//! `hapax records list`.

use std::collections::BTreeSet;

use hapax_core::Scope;

use crate::binary::{Run, hapax};
use crate::fixture::{DAY, Fixture, HOUR, key_text};

/// One record in each permanent state, and a lapsed claim.
fn one_of_each() -> Fixture {
    Fixture::prepared(HOUR, async |prepare| {
        prepare.completed("a", DAY).await;
        prepare.failed("b").await;
        prepare.released("c").await;
        prepare.uncertain("d").await;
        prepare.claim("e").await;
    })
}

fn list(fixture: &Fixture, args: &[&str]) -> Run {
    hapax(fixture.path(), &[&["records", "list"], args].concat()).ended(0)
}

fn states(run: &Run) -> Vec<String> {
    let document = run.json();
    let records = document["records"].as_array().unwrap();
    records.iter().map(|record| record["state"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_state_is_listed_and_a_lapsed_claim_is_uncertain() {
    let fixture = one_of_each();
    let listed = states(&list(&fixture, &["--json"]));
    assert_eq!(listed, ["uncertain", "uncertain", "released", "failed", "completed"], "newest first");
    let text = list(&fixture, &[]).stdout;
    assert!(text.contains("uncertain (lapsed)") && text.contains("uncertain (panicked)"), "{text}");
    assert!(!text.contains('\t'), "{text}");
}

#[test]
fn a_record_in_json_has_the_names_of_the_glossary() {
    let fixture = one_of_each();
    let document = list(&fixture, &["--json", "--state", "completed"]).json();
    let record = &document["records"][0];
    let fields: BTreeSet<_> = record.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = "attempt created_at created_at_ms expires_at expires_at_ms id lease_until lease_until_ms \
                    reason recorded scope state updated_at updated_at_ms version";
    assert_eq!(fields, expected.split_whitespace().collect());
    assert_eq!(
        record["scope"],
        serde_json::json!({ "namespace": "", "operation": "charge", "principal": null })
    );
    assert_eq!(
        record["recorded"],
        serde_json::json!({ "class": "success", "format": "function", "meta_bytes": 0, "payload_bytes": 21 })
    );
    assert_eq!(document["next"], serde_json::Value::Null);
    assert!(record["created_at"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn filters_select_records() {
    let fixture = one_of_each();
    fixture.prepare(HOUR / 2, async |prepare| {
        prepare.claim_in(Scope::new("refund").in_namespace("shop"), "f").await;
    });
    let count = |args: &[&str]| states(&list(&fixture, &[&["--json"], args].concat())).len();
    assert_eq!(count(&[]), 6);
    assert_eq!(count(&["--state", "completed", "--state", "failed"]), 2);
    assert_eq!(count(&["--namespace", "shop"]), 1);
    assert_eq!(count(&["--operation", "ref"]), 1);
    assert_eq!(count(&["--key", &key_text("a")]), 1);
    assert_eq!(count(&["--key", "another"]), 0);
    assert_eq!(count(&["--older-than", "45m", "--state", "completed"]), 1);
    assert_eq!(count(&["--older-than", "2h"]), 0);
    assert_eq!(count(&["--newer-than", "45m", "--state", "completed"]), 0);
    assert_eq!(count(&["--newer-than", "2h"]), 6);
}

#[test]
fn a_quoted_key_equals_the_unquoted_one() {
    let fixture = one_of_each();
    let quoted = format!("\"{}\"", key_text("a"));
    assert_eq!(states(&list(&fixture, &["--json", "--key", &quoted])), ["completed"]);
}

#[test]
fn an_id_is_found_by_its_prefix() {
    let fixture = one_of_each();
    let id = list(&fixture, &["--json", "--state", "failed"]).json()["records"][0]["id"].clone();
    let start = &id.as_str().unwrap()[..4].to_uppercase();
    let found = list(&fixture, &["--json", "--id", start]).json();
    assert_eq!(found["records"][0]["id"], id);
    hapax(fixture.path(), &["records", "list", "--id", "xyz"]).failed(2, "input-invalid");
}

#[test]
fn pages_contain_every_record_once() {
    let fixture = one_of_each();
    let whole = list(&fixture, &["--json", "--all", "--limit", "2"]).json();
    let mut paged = Vec::new();
    let mut page = list(&fixture, &["--json", "--limit", "2"]).json();
    loop {
        let records = page["records"].as_array().unwrap();
        assert!(records.len() <= 2);
        paged.extend(records.iter().map(|record| record["id"].clone()));
        let Some(next) = page["next"].as_str() else { break };
        page = list(&fixture, &["--json", "--limit", "2", "--cursor", next]).json();
    }
    let all: Vec<_> =
        whole["records"].as_array().unwrap().iter().map(|record| record["id"].clone()).collect();
    assert_eq!(all.len(), 5);
    assert_eq!(paged, all);
    assert_eq!(whole["next"], serde_json::Value::Null);
}

#[test]
fn the_command_for_the_next_page_is_printed() {
    let fixture = one_of_each();
    let run = list(&fixture, &["--limit", "2"]);
    assert!(run.stderr.contains("--cursor"), "{run:?}");
    // The printed command has the filters of the listing.
    let args = ["--operation", "ch", "--newer-than", "2h", "--key", &key_text("a"), "--limit", "2"];
    assert_eq!(list(&fixture, &args).stderr, "");
    let args = [
        "--state",
        "completed",
        "--state",
        "failed",
        "--operation",
        "ch",
        "--newer-than",
        "2h",
        "--limit",
        "1",
    ];
    let hint = list(&fixture, &args).stderr;
    let line = hint.trim().split("continue with hapax ").nth(1).unwrap_or_else(|| panic!("{hint}"));
    let next: Vec<&str> = line.split(' ').collect();
    assert_eq!(next[..2], ["records", "list"]);
    assert_eq!(next[2..6], ["--state", "completed", "--state", "failed"]);
    let rest = hapax(fixture.path(), &next).ended(0);
    assert_eq!((rest.stdout.matches("charge").count(), rest.stderr.as_str()), (1, ""), "{rest:?}");
    let all = list(&fixture, &["--limit", "2", "--all"]);
    assert_eq!(all.stdout.matches("charge").count(), 5, "{all:?}");
    assert_eq!(all.stdout.matches("operation").count(), 1, "one header: {all:?}");
    assert!(all.stdout.lines().all(|line| line.trim() == line), "{all:?}");
    assert_eq!(all.stderr, "");
}

#[test]
fn an_invalid_cursor_is_refused() {
    let fixture = one_of_each();
    hapax(fixture.path(), &["records", "list", "--cursor", "nonsense"]).failed(2, "store-invalid");
}

#[test]
fn an_empty_listing_is_reported() {
    let fixture = Fixture::empty();
    let run = list(&fixture, &[]);
    assert_eq!(run.stdout, "");
    assert!(run.stderr.contains("no record matches"));
    assert_eq!(list(&fixture, &["--json"]).json()["records"], serde_json::json!([]));
}

#[test]
fn a_store_that_is_in_use_can_be_listed() {
    let fixture = one_of_each();
    let held = fixture.open();
    assert_eq!(states(&list(&fixture, &["--json"])).len(), 5);
    drop(held);
}
