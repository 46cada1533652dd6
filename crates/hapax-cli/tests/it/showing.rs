//! `hapax records show`.

use hapax_core::{RecordId, Scope};

use crate::binary::hapax;
use crate::fixture::{DAY, Fixture, HOUR, PAYLOAD, key_text};

fn lapsed() -> (Fixture, RecordId) {
    let mut id = None;
    let fixture = Fixture::prepared(HOUR, async |prepare| id = Some(prepare.claim("a").await.id));
    (fixture, id.unwrap())
}

fn completed() -> (Fixture, RecordId) {
    let mut id = None;
    let fixture = Fixture::prepared(HOUR, async |prepare| id = Some(prepare.completed("a", DAY).await));
    (fixture, id.unwrap())
}

#[test]
fn a_lapsed_claim_is_shown_as_uncertain_with_the_next_steps() {
    let (fixture, id) = lapsed();
    let text = hapax(fixture.path(), &["records", "show", &id.to_string()]).ended(0).stdout;
    assert!(text.contains("state      uncertain (lapsed)"), "{text}");
    assert!(text.contains("first claimed"), "{text}");
    assert!(text.contains("1h ago"), "{text}");
    assert!(text.contains(&format!("hapax records settle {id} --not-applied\n")), "{text}");
}

#[test]
fn the_next_command_fits_the_record() {
    for (operation, expected) in [
        ("charge", "--applied --json-value RESULT"),
        ("POST /orders", "--applied --status CODE --body-json BODY"),
        ("POST shop.example /orders", "--applied --status CODE --body-json BODY"),
    ] {
        let fixture = Fixture::prepared(HOUR, async |prepare| {
            prepare.claim_in(Scope::new(operation), "a").await;
        });
        let text = hapax(fixture.path(), &["records", "show", "--key", &key_text("a")]).ended(0).stdout;
        assert!(text.contains(expected), "{operation}: {text}");
    }
}

#[test]
fn the_next_command_names_a_store_other_than_the_default() {
    let (fixture, id) = lapsed();
    let url = format!("file:{}", fixture.store().display());
    let args = ["records", "show", &id.to_string(), "--store", &url];
    let text = hapax(fixture.path(), &args).ended(0).stdout;
    assert!(text.contains(&format!("settle {id} --not-applied --store {url}")), "{text}");
}

#[test]
fn json_contains_the_record_and_the_time_of_the_store() {
    let (fixture, id) = lapsed();
    let document = hapax(fixture.path(), &["records", "show", &id.to_string(), "--json"]).ended(0).json();
    let record = &document["record"];
    assert_eq!(record["id"], id.to_string());
    assert_eq!(record["state"], "uncertain");
    assert_eq!(record["reason"], "lapsed");
    assert_eq!(record["attempt"], 1);
    assert!(record["lease_until_ms"].as_u64().unwrap() < document["now_ms"].as_u64().unwrap());
}

#[test]
fn the_payload_is_shown_only_on_request() {
    let (fixture, id) = completed();
    let id = id.to_string();
    let hidden = hapax(fixture.path(), &["records", "show", &id]).ended(0);
    assert!(!hidden.stdout.contains(PAYLOAD), "{hidden:?}");
    let shown = hapax(fixture.path(), &["records", "show", &id, "--payload"]).ended(0);
    assert!(shown.stdout.contains(PAYLOAD), "{shown:?}");
    let json = hapax(fixture.path(), &["records", "show", &id, "--payload", "--json"]).ended(0).json();
    assert_eq!(json["record"]["recorded"]["payload"], PAYLOAD);
}

#[test]
fn a_record_is_found_by_a_prefix_of_its_id_and_by_its_key() {
    let (fixture, id) = completed();
    let key = key_text("a");
    let ways: [&[&str]; 4] = [
        &[&id.to_string()[..8]],
        &["--key", &key],
        &["--key", &key, "--operation", "charge"],
        &["--key", &key, "--namespace", ""],
    ];
    for way in ways {
        let run = hapax(fixture.path(), &[&["records", "show", "--json"], way].concat()).ended(0);
        assert_eq!(run.json()["record"]["id"], id.to_string(), "{way:?}");
    }
}

#[test]
fn a_missing_record_is_an_error() {
    let (fixture, _) = completed();
    let unused = "0".repeat(64);
    let key = key_text("a");
    let ways: [&[&str]; 5] = [
        &[&unused],
        &["00000000"],
        &["--key", "another"],
        &["--key", &key, "--operation", "refund"],
        &["--key", &key, "--principal", "alice"],
    ];
    for way in ways {
        hapax(fixture.path(), &[&["records", "show"], way].concat()).failed(3, "record-missing");
    }
}

#[test]
fn a_key_in_several_scopes_is_ambiguous() {
    let fixture = Fixture::prepared(HOUR, async |prepare| {
        prepare.claim_in(Scope::new("charge"), "a").await;
        prepare.claim_in(Scope::new("refund").in_namespace("shop"), "a").await;
        prepare.claim_in(Scope::new("refund").in_namespace("shop").principal("alice"), "a").await;
    });
    let key = key_text("a");
    let show = |way: &[&str]| hapax(fixture.path(), &[&["records", "show", "--key", &key], way].concat());
    let several = show(&[]).failed(4, "record-ambiguous");
    assert!(several.stderr.contains("3 records match"), "{several:?}");
    assert!(several.stderr.contains("operation refund"), "{several:?}");
    show(&["--namespace", "shop"]).failed(4, "record-ambiguous");
    show(&["--namespace", "shop", "--principal", "alice"]).ended(0);
    show(&["--namespace", "shop", "--operation", "refund"]).ended(0);
    show(&["--operation", "charge"]).ended(0);
}

#[test]
fn short_and_invalid_ids_are_refused() {
    let (fixture, id) = completed();
    hapax(fixture.path(), &["records", "show", &id.to_string()[..7]]).failed(2, "input-invalid");
    hapax(fixture.path(), &["records", "show", "not-hexadecimal"]).failed(2, "input-invalid");
    hapax(fixture.path(), &["records", "show", &"0".repeat(65)]).failed(2, "input-invalid");
}

#[test]
fn an_invalid_key_is_refused_without_repeating_it() {
    let (fixture, _) = completed();
    let long = "x".repeat(256);
    for key in ["", "   ", "caf\u{e9}", "tab\there", "\"open", &long] {
        let run = hapax(fixture.path(), &["records", "show", "--key", key]).failed(2, "key-invalid");
        assert!(key.trim().is_empty() || !run.stderr.contains(key), "{run:?}");
    }
}

#[test]
fn control_characters_of_an_operation_are_escaped() {
    let fixture = Fixture::prepared(HOUR, async |prepare| {
        prepare.claim_in(Scope::new("\u{1b}[2Jcharge"), "a").await;
    });
    let run = hapax(fixture.path(), &["records", "show", "--key", &key_text("a")]).ended(0);
    assert!(!run.stdout.contains('\u{1b}'), "{run:?}");
    let run = hapax(fixture.path(), &["records", "list"]).ended(0);
    assert!(!run.stdout.contains('\u{1b}'), "{run:?}");
}

#[test]
fn an_unreadable_record_is_reported() {
    let (fixture, id) = completed();
    fixture.damage_records();
    let id = id.to_string();
    for way in [&[id.as_str()][..], &[&id[..8]], &["--key", &key_text("a")]] {
        hapax(fixture.path(), &[&["records", "show"], way].concat()).failed(1, "record-unreadable");
    }
    hapax(fixture.path(), &["records", "delete", &id, "--yes"]).failed(1, "record-unreadable");
    let listed = hapax(fixture.path(), &["records", "list"]).ended(0);
    assert!(listed.stderr.contains(&format!("the record {id} cannot be read")), "{listed:?}");
    let listed = hapax(fixture.path(), &["records", "list", "--json"]).ended(0).json();
    assert_eq!(listed["unreadable"], serde_json::json!([id]));
}
