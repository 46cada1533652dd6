//! Secrets that must never be printed.

use crate::binary::hapax;
use crate::fixture::{DAY, Fixture, HOUR, KEY, PAYLOAD, key_text};

#[test]
fn no_command_prints_keys_or_unrequested_payloads() {
    let fixture = Fixture::prepared(HOUR, async |prepare| {
        prepare.completed("a", DAY).await;
        prepare.failed("b").await;
        prepare.uncertain("c").await;
        prepare.uncertain("d").await;
    });
    let [a, b, c, d, z] = ["a", "b", "c", "d", "z"].map(key_text);
    let commands: [&[&str]; 11] = [
        &["check"],
        &["records", "list"],
        &["records", "list", "--key", &a],
        &["records", "list", "--key", &z],
        &["records", "show", "--key", &a],
        &["records", "show", "--key", &b, "--operation", "charge"],
        &["records", "show", "--key", &z],
        &["records", "settle", "--key", &c, "--applied", "--json-value", PAYLOAD, "--yes"],
        &["records", "release", "--key", &d, "--yes"],
        &["records", "delete", "--key", &a, "--yes"],
        &["sweep"],
    ];
    for command in commands {
        for mode in ["--verbose", "--json"] {
            let run = hapax(fixture.path(), &[command, &[mode]].concat());
            for canary in [KEY, PAYLOAD.trim_matches('"')] {
                assert!(!run.stdout.contains(canary), "{run:?}");
                assert!(!run.stderr.contains(canary), "{run:?}");
            }
        }
    }
}

#[test]
fn a_password_in_a_store_url_is_not_printed() {
    let fixture = Fixture::bare();
    let url = "mysql://app:hunter2@db/hapax";
    let run = hapax(fixture.path(), &["check", "--store", url]).failed(2, "store-url-invalid");
    assert!(!run.stderr.contains("hunter2"), "{run:?}");
}
