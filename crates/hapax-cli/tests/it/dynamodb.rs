//! Stores in a DynamoDB table: several sidecars act as one, and all commands support the store.

use std::process::Command;
use std::time::Duration;

use hapax_core::{Claim, ClaimRequest, Clock, ManualClock, Store, SystemClock, Timestamp};
use hapax_store_dynamodb::{Credentials, DynamoDbStore};
use hapax_testkit::operations::{self, fill};
use hapax_testkit::servers::DynamoDbServer;
use serde_json::json;

use crate::binary::{Run, alone, command, hapax, run};
use crate::fixture::{Fixture, block_on};
use crate::shared_store::{ORDER, keyed, orders, recovers_from_an_outage};
use crate::sidecar::{Origin, Sidecar, ask};

/// The command, with credentials that DynamoDB Local accepts.
fn signed(fixture: &Fixture) -> Command {
    let mut command = command(fixture.path());
    command.env("AWS_ACCESS_KEY_ID", "test").env("AWS_SECRET_ACCESS_KEY", "canary-secret");
    command
}

fn run_signed(fixture: &Fixture, url: &str, args: &[&str]) -> Run {
    let run = run(signed(fixture).args(args).args(["--store", url]));
    assert!(!run.stdout.contains("canary-secret") && !run.stderr.contains("canary-secret"), "{run:?}");
    run
}

fn serve(fixture: &Fixture, url: &str, origin: &Origin) -> Sidecar {
    let args = ["serve", "--json", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    // Deletions by commands must be visible immediately.
    let mut typed = signed(fixture);
    typed.args(args).args(["--upstream", &origin.url(), "--store", url]);
    Sidecar::spawn(typed.env("HAPAX_STORE_CACHE_BYTES", "0"))
}

#[test]
fn all_commands_support_a_table_and_sidecars_on_it_act_as_one() {
    let server = alone(DynamoDbServer::start);
    let url = server.url("hapax");
    let fixture = Fixture::bare();
    let missing = run_signed(&fixture, &url, &["records", "list"]).failed(5, "store-missing");
    assert!(missing.stderr.contains("hapax migrate"), "{missing:?}");
    let refused = run_signed(&fixture, &url, &["serve", "--demo"]).failed(5, "store-missing");
    assert!(refused.stderr.contains("dynamodb://hapax?region=local"), "{refused:?}");

    let checked = run_signed(&fixture, &url, &["check"]).ended(0).stdout;
    for part in [
        "(dynamodb, not created yet)",
        "promise  best effort",
        "is not an endpoint of AWS",
        "`hapax migrate` creates",
    ] {
        assert!(checked.contains(part), "{part}: {checked}");
    }

    let planned = run_signed(&fixture, &url, &["migrate", "--dry-run"]).ended(0).stdout;
    assert!(planned.contains("would be migrated to version 1: create the table"), "{planned}");
    let done = run_signed(&fixture, &url, &["migrate", "--json"]).ended(0).json();
    assert_eq!((done["target"].as_u64(), done["changes"].as_array().unwrap().len()), (Some(1), 2));
    assert!(run_signed(&fixture, &url, &["migrate"]).ended(0).stdout.contains("nothing to do"));

    let origin = orders();
    let sidecars = [serve(&fixture, &url, &origin), serve(&fixture, &url, &origin)];
    for (sidecar, replayed) in [(&sidecars[0], None), (&sidecars[1], Some("true"))] {
        let answer = ask(sidecar.address(), &keyed("shared"), ORDER);
        assert_eq!((answer.status(), answer.body.as_str()), (201, "order 1"));
        assert_eq!(answer.header("x-idempotent-replayed"), replayed);
    }

    let listed = run_signed(&fixture, &url, &["records", "list", "--json"]).ended(0).json();
    assert_eq!(listed["records"][0]["state"], "completed");
    let id = listed["records"][0]["id"].as_str().unwrap().to_owned();
    let checked = run_signed(&fixture, &url, &["check", "--deep"]).ended(0).stdout;
    assert!(checked.contains("(dynamodb)") && checked.contains("best effort"), "{checked}");
    assert_eq!(run_signed(&fixture, &url, &["sweep"]).ended(0).stdout, "removed 0 expired, 0 dropped\n");
    run_signed(&fixture, &url, &["records", "delete", &id, "--yes"]).ended(0);
    assert_eq!(ask(sidecars[1].address(), &keyed("shared"), ORDER).body, "order 2");
}

#[test]
fn one_command_settles_or_deletes_a_claim_of_a_dead_owner() {
    // Longer than all retries of a call with default limits.
    let lease = Duration::from_secs(20);
    let server = alone(DynamoDbServer::start);
    let url = server.url("gone");
    let fixture = Fixture::bare();
    // The owner's clock is behind, so that its claims have lapsed immediately.
    let then = Timestamp::from_millis(SystemClock::new().now().as_millis() - 60_000);
    let [settled, deleted] = block_on(async {
        let options = DynamoDbStore::options(&url).unwrap().credentials(Credentials::new("test", "test"));
        options.make().await.unwrap();
        let owner = options.clock(ManualClock::at(then)).connect().await.unwrap();
        let claims = ["settled", "deleted"].map(|name| ClaimRequest { lease, ..operations::ask(name) });
        for claim in &claims {
            assert!(matches!(owner.claim(claim).await.unwrap(), Claim::Acquired(_)));
        }
        claims.map(|claim| claim.key.id.to_string())
    });
    std::thread::scope(|threads| {
        threads.spawn(|| {
            run_signed(&fixture, &url, &["records", "settle", &settled, "--not-applied", "--yes"]).ended(0);
        });
        threads.spawn(|| run_signed(&fixture, &url, &["records", "delete", &deleted, "--yes"]).ended(0));
    });
    let left = run_signed(&fixture, &url, &["records", "list", "--json"]).ended(0).json();
    let left = left["records"].as_array().unwrap();
    assert_eq!((left.len(), &left[0]["id"], &left[0]["state"]), (1, &json!(settled), &json!("released")));
}

#[test]
fn a_sidecar_recovers_from_an_outage_of_the_service() {
    let server = alone(DynamoDbServer::start_on_disk);
    let url = server.url("hapax");
    let (origin, fixture) = (orders(), Fixture::bare());
    run_signed(&fixture, &url, &["migrate"]).ended(0);
    let sidecar = serve(&fixture, &url, &origin);
    recovers_from_an_outage(&sidecar, &origin, "killed", || server.kill(), || server.restart());
    recovers_from_an_outage(&sidecar, &origin, "paused", || server.pause(), || server.resume());
}

#[test]
fn a_plan_agrees_with_the_size_of_the_table() {
    const RECORDS: u64 = 100;
    let server = alone(DynamoDbServer::start);
    let fixture = Fixture::bare();
    for body in [100, 2048, 20_000] {
        let table = format!("plan-{body}");
        block_on(async {
            let options = DynamoDbStore::options(&server.url(&table)).unwrap();
            let options = options.credentials(Credentials::new("test", "test"));
            options.make().await.unwrap();
            fill(&options.connect().await.unwrap(), RECORDS, body + 256).await;
        });
        let described = server.call("DescribeTable", &format!(r#"{{"TableName": "{table}"}}"#));
        let described: serde_json::Value = serde_json::from_str(&described).unwrap();
        // AWS bills a hundred bytes more for each item.
        let measured = described["Table"]["TableSizeBytes"].as_u64().unwrap() / RECORDS + 100;
        let args = ["plan", "--rate", "100/h", "--retention", "1h", "--body", &body.to_string(), "--json"];
        let needs = hapax(fixture.path(), &args).ended(0).json();
        let need = needs.as_array().unwrap().iter().find(|need| need["store"] == "dynamodb://TABLE").unwrap();
        let planned = need["disk_bytes"].as_u64().unwrap() / RECORDS;
        let off = planned.abs_diff(measured) * 100 / measured;
        assert!(off <= 10, "{body}: {planned} planned, {measured} measured");
    }
}
