//! Stores on a Redis server: several sidecars act as one, and all commands support the store.

use std::thread;

use hapax_store_redis::RedisStore;
use hapax_testkit::operations::fill;
use hapax_testkit::servers::{RedisCluster, RedisServer};

use crate::binary::{alone, hapax};
use crate::fixture::{Fixture, block_on};
use crate::shared_store::{ORDER, act_as_one, keyed, orders, recovers_from_an_outage};
use crate::sidecar::{Origin, Sidecar, ask, reply};

fn start() -> RedisServer {
    alone(RedisServer::start)
}

fn redis_cli(server: &RedisServer, command: &[&str]) -> String {
    alone(|| server.command(command))
}

#[test]
fn two_sidecars_on_one_server_act_as_one() {
    let server = start();
    let (origin, fixture) = (orders(), Fixture::bare());
    let serve = || Sidecar::start(&fixture, &["--upstream", &origin.url(), "--store", &server.url()]);
    act_as_one(&[serve(), serve()], &origin);
}

#[test]
fn a_waiter_at_one_sidecar_receives_the_result_of_another() {
    let server = start();
    let (open, gate) = std::sync::mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    let (arrival, arrivals) = std::sync::mpsc::channel();
    let origin = Origin::start(move |_, number| {
        arrival.send(()).unwrap();
        gate.lock().unwrap().recv().unwrap();
        reply(201, &format!("order {number}"))
    });
    let fixture = Fixture::bare();
    std::fs::write(fixture.path().join("hapax.toml"), "[defaults]\nwait = \"100s\"\n").unwrap();
    let serve = || Sidecar::start(&fixture, &["--upstream", &origin.url(), "--store", &server.url()]);
    let (first, second) = (serve(), serve());
    let (to_first, to_second) = (first.address(), second.address());
    let owner = thread::spawn(move || ask(to_first, &keyed("waited"), ORDER));
    arrivals.recv().unwrap();
    let waiter = thread::spawn(move || ask(to_second, &keyed("waited"), ORDER));
    // The server counts the subscription of the waiter.
    while redis_cli(&server, &["PUBSUB", "CHANNELS"]).is_empty() {}
    open.send(()).unwrap();
    assert_eq!(owner.join().unwrap().body, "order 1");
    let waited = waiter.join().unwrap();
    assert_eq!((waited.status(), waited.body.as_str()), (201, "order 1"));
    assert_eq!(origin.seen().len(), 1);
}

#[test]
fn a_sidecar_recovers_from_an_outage_of_the_server() {
    let server = alone(|| RedisServer::options().aof(hapax_testkit::servers::Aof::Always).start());
    let (origin, fixture) = (orders(), Fixture::bare());
    let sidecar = Sidecar::start(&fixture, &["--upstream", &origin.url(), "--store", &server.url()]);
    recovers_from_an_outage(&sidecar, &origin, "killed", || server.kill(), || server.restart());
    recovers_from_an_outage(&sidecar, &origin, "paused", || server.pause(), || server.resume());
}

#[test]
fn all_commands_support_a_server() {
    let server = alone(|| RedisServer::options().argument("--requirepass", "canary-password").start());
    let url = format!("{}/0?prefix=shop:", server.url().replace("redis://", "redis://:canary-password@"));
    let fixture = Fixture::bare();
    let run = |args: &[&str]| hapax(fixture.path(), &[args, &["--store", &url]].concat());
    let shown = url.replace(":canary-password@", "");

    let missing = run(&["records", "list"]).failed(5, "store-missing");
    assert!(missing.stderr.contains(&shown) && !missing.stderr.contains("canary-password"), "{missing:?}");

    let checked = run(&["check"]).ended(0).stdout;
    for part in
        ["(redis, not created yet)", "promise  best effort", "appendonly is off", "`hapax serve` creates it"]
    {
        assert!(checked.contains(part), "{part}: {checked}");
    }
    let checked = run(&["check", "--json"]).ended(0).json();
    assert_eq!((&checked["store"]["exists"], &checked["records"]), (&false.into(), &serde_json::Value::Null));
    run(&["check", "--deep"]).failed(5, "store-missing");
    run(&["records", "list"]).failed(5, "store-missing");

    let origin = Origin::start(|_, _| reply(201, "made"));
    let mut sidecar = Sidecar::start_without_cache(&fixture, &["--upstream", &origin.url(), "--store", &url]);
    let promise = sidecar.logged("the promise of");
    assert!(promise.contains("WARN") && promise.contains("best effort"), "{promise}");
    assert!(promise.contains(&shown) && !promise.contains("canary-password"), "{promise}");
    assert_eq!(ask(sidecar.address(), &keyed("kept"), ORDER).status(), 201);

    let listed = run(&["records", "list", "--json"]).ended(0).json();
    assert_eq!(listed["records"][0]["state"], "completed");
    let id = listed["records"][0]["id"].as_str().unwrap().to_owned();
    let checked = run(&["check", "--deep"]).ended(0).stdout;
    assert!(checked.contains(&format!("{shown} (redis)")) && checked.contains("best effort"), "{checked}");
    assert!(!checked.contains("canary-password"), "{checked}");
    assert_eq!(run(&["sweep"]).ended(0).stdout, "removed 0 expired, 0 dropped\n");
    assert!(run(&["migrate"]).ended(0).stdout.contains("is at version 1, the newest"));
    run(&["records", "delete", &id, "--yes"]).ended(0);
    assert_eq!(ask(sidecar.address(), &keyed("kept"), ORDER).header("x-idempotent-replayed"), None);
}

#[test]
fn all_commands_support_a_cluster() {
    let cluster = alone(RedisCluster::start);
    let origin = Origin::start(|_, number| reply(201, &format!("order {number}")));
    let fixture = Fixture::bare();
    let serve = || Sidecar::start(&fixture, &["--upstream", &origin.url(), "--store", &cluster.url()]);
    let sidecars = [serve(), serve()];
    for number in 0..12 {
        for sidecar in &sidecars {
            let answer = ask(sidecar.address(), &keyed(&number.to_string()), ORDER);
            assert_eq!((answer.status(), answer.body), (201, format!("order {}", number + 1)));
        }
    }
    let run = |args: &[&str]| hapax(fixture.path(), &[args, &["--store", &cluster.url()]].concat());
    let listed = run(&["records", "list", "--json"]).ended(0).json();
    assert_eq!(listed["records"].as_array().map(Vec::len), Some(12));
    let checked = run(&["check", "--deep"]).ended(0).stdout;
    assert!(checked.contains("redis+cluster://") && checked.contains("best effort"), "{checked}");

    let member = cluster.primaries()[0].url();
    let refused = hapax(fixture.path(), &["check", "--store", &member]).failed(5, "store-incompatible");
    assert!(refused.stderr.contains("redis+cluster://"), "{refused:?}");
}

#[test]
fn an_unusable_server_is_reported_with_a_hint() {
    let server = alone(|| RedisServer::options().memory(64 << 20, "allkeys-lru").start());
    let fixture = Fixture::bare();
    let refused = hapax(fixture.path(), &["serve", "--demo", "--store", &server.url()]);
    let refused = refused.failed(5, "store-incompatible");
    assert!(refused.stderr.contains("maxmemory-policy noeviction"), "{refused:?}");
    server.kill();
    let unreachable = hapax(fixture.path(), &["check", "--store", &server.url()]);
    let unreachable = unreachable.failed(5, "store-unavailable");
    assert_eq!(unreachable.stderr.matches("refused").count(), 1, "{unreachable:?}");
}

#[test]
fn a_plan_agrees_with_the_memory_of_the_server() {
    const RECORDS: u64 = 600;
    let server = start();
    let used = || -> u64 {
        let info = redis_cli(&server, &["INFO", "memory"]);
        info.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap().trim().parse().unwrap()
    };
    let fixture = Fixture::bare();
    // The first round includes the server's memory for clients and scripts.
    for body in [100, 100, 1000, 4096, 20_000] {
        redis_cli(&server, &["FLUSHALL"]);
        let measured = block_on(async {
            let store = RedisStore::connect(&server.url()).await.unwrap();
            let before = used();
            fill(&store, RECORDS, body + 256).await;
            (used() - before) / RECORDS
        });
        let args = ["plan", "--rate", "600/h", "--retention", "1h", "--body", &body.to_string(), "--json"];
        let needs = hapax(fixture.path(), &args).ended(0).json();
        assert_eq!(needs[2]["store"], "redis://HOST");
        let planned = needs[2]["memory_bytes"].as_u64().unwrap() * 100 / 125 / RECORDS;
        let off = planned.abs_diff(measured) * 100 / measured;
        assert!(off <= 20, "{body}: {planned} planned, {measured} measured");
    }
}
