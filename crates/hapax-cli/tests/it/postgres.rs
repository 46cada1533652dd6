//! Stores in a PostgreSQL database: several sidecars act as one, and all commands support the store.

use hapax_core::Store;
use hapax_store_postgres::PostgresStore;
use hapax_testkit::operations::fill;
use hapax_testkit::servers::PostgresServer;

use crate::binary::{alone, hapax};
use crate::fixture::{Fixture, block_on};
use crate::shared_store::{ORDER, act_as_one, keyed, orders, recovers_from_an_outage};
use crate::sidecar::{Origin, Sidecar, ask, reply};

#[test]
fn three_sidecars_on_one_database_act_as_one() {
    let server = alone(PostgresServer::start);
    let (origin, fixture) = (orders(), Fixture::bare());
    let serve = || Sidecar::start(&fixture, &["--upstream", &origin.url(), "--store", &server.url()]);
    act_as_one(&[serve(), serve(), serve()], &origin);
}

#[test]
fn a_sidecar_recovers_from_an_outage_of_the_server() {
    let server = alone(|| PostgresServer::options().durable().start());
    let (origin, fixture) = (orders(), Fixture::bare());
    let sidecar = Sidecar::start(&fixture, &["--upstream", &origin.url(), "--store", &server.url()]);
    recovers_from_an_outage(&sidecar, &origin, "killed", || server.kill(), || server.restart());
    recovers_from_an_outage(&sidecar, &origin, "paused", || server.pause(), || server.resume());
}

#[test]
fn a_check_without_a_store_prints_the_promise_of_the_server() {
    let server = alone(|| PostgresServer::options().durable().start());
    let fixture = Fixture::bare();
    let run = |args: &[&str]| hapax(fixture.path(), &[args, &["--store", &server.url()]].concat());
    let checked = run(&["check", "--json"]).ended(0).json();
    assert_eq!(checked["store"]["exists"], false);
    assert!(checked["promise"].as_str().unwrap().starts_with("at most once"), "{checked}");
    run(&["records", "list"]).failed(5, "store-missing");
    run(&["migrate"]).ended(0);
    let made = run(&["check", "--json"]).ended(0).json();
    assert_eq!((&made["store"]["exists"], &made["promise"]), (&true.into(), &checked["promise"]));
}

#[test]
fn all_commands_support_a_database() {
    let server = alone(PostgresServer::start);
    let with_password = server.url().replace("postgres@", "postgres:canary-password@");
    let url = format!("{with_password}?schema=shop");
    let fixture = Fixture::bare();
    let run = |args: &[&str]| hapax(fixture.path(), &[args, &["--store", &url]].concat());
    let shown = format!("postgres://127.0.0.1:{}/postgres?schema=shop", server.port());

    let missing = run(&["records", "list"]).failed(5, "store-missing");
    assert!(missing.stderr.contains(&shown) && !missing.stderr.contains("canary-password"), "{missing:?}");

    let checked = run(&["check"]).ended(0).stdout;
    for part in ["(postgres, not created yet)", "promise  best effort", "fsync is off", "`hapax migrate` or"]
    {
        assert!(checked.contains(part), "{part}: {checked}");
    }
    run(&["records", "list"]).failed(5, "store-missing");

    let tried = run(&["migrate", "--dry-run"]).ended(0).stdout;
    assert_eq!(tried, format!("{shown} would be migrated to version 1: records\n"));
    run(&["records", "list"]).failed(5, "store-missing");
    assert_eq!(run(&["migrate", "--json"]).ended(0).json()["changes"][0], "records");
    assert!(run(&["migrate"]).ended(0).stdout.contains("is at version 1, the newest"));

    let origin = Origin::start(|_, _| reply(201, "made"));
    let mut sidecar = Sidecar::start_without_cache(&fixture, &["--upstream", &origin.url(), "--store", &url]);
    let promise = sidecar.logged("the promise of");
    assert!(promise.contains("WARN") && promise.contains("best effort"), "{promise}");
    assert!(promise.contains(&shown) && promise.contains("fsync is off"), "{promise}");
    assert_eq!(ask(sidecar.address(), &keyed("kept"), ORDER).status(), 201);

    let listed = run(&["records", "list", "--json"]).ended(0).json();
    assert_eq!(listed["records"][0]["state"], "completed");
    let id = listed["records"][0]["id"].as_str().unwrap().to_owned();
    let checked = run(&["check", "--deep"]).ended(0).stdout;
    assert!(checked.contains(&format!("{shown} (postgres)")) && checked.contains("best effort"), "{checked}");
    assert!(checked.contains("fsync is off") && !checked.contains("canary-password"), "{checked}");
    assert_eq!(run(&["sweep"]).ended(0).stdout, "removed 0 expired, 0 dropped\n");
    run(&["records", "delete", &id, "--yes"]).ended(0);
    assert_eq!(ask(sidecar.address(), &keyed("kept"), ORDER).header("x-idempotent-replayed"), None);
}

#[test]
fn a_plan_agrees_with_the_size_of_the_database() {
    const RECORDS: u64 = 600;
    let server = alone(PostgresServer::start);
    let fixture = Fixture::bare();
    for body in [100, 1000, 4096, 20_000] {
        let url = format!("{}?schema=plan_{body}", server.url());
        let measured = block_on(async {
            let store = PostgresStore::connect(&url).await.unwrap();
            fill(&store, RECORDS, body + 256).await;
            store.stats().await.unwrap().bytes / RECORDS
        });
        let args = ["plan", "--rate", "600/h", "--retention", "1h", "--body", &body.to_string(), "--json"];
        let needs = hapax(fixture.path(), &args).ended(0).json();
        assert_eq!(needs[3]["store"], "postgres://HOST/DATABASE");
        let planned = needs[3]["disk_bytes"].as_u64().unwrap() * 100 / 125 / RECORDS;
        let off = planned.abs_diff(measured) * 100 / measured;
        assert!(off <= 20, "{body}: {planned} planned, {measured} measured");
    }
}
