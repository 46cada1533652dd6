//! Redis as a fast tier in front of PostgreSQL: the database decides claims, Redis replays finished records.

use hapax_testkit::servers::{PostgresServer, RedisServer};

use crate::binary::{alone, hapax};
use crate::fixture::Fixture;
use crate::shared_store::{ORDER, keyed, orders, until_ready};
use crate::sidecar::{Sidecar, ask};

#[test]
fn redis_replays_and_the_database_decides() {
    let (redis, postgres) =
        (alone(RedisServer::start), alone(|| PostgresServer::options().durable().start()));
    let fixture = Fixture::bare();
    let stores =
        ["--store", &postgres.url(), "--fast", &format!("{}?prefix=shop:&timeout_ms=60000", redis.url())];
    let origin = orders();
    let serve =
        || Sidecar::start_without_cache(&fixture, &[&["--upstream", &origin.url()][..], &stores].concat());
    let sidecars = [serve(), serve()];

    let first = ask(sidecars[0].address(), &keyed("kept"), ORDER);
    assert_eq!((first.status(), first.body.as_str()), (201, "order 1"));
    let is_stored = || redis.command(&["KEYS", "shop:fact:*"]).lines().any(|key| key.len() > 64);
    while !is_stored() {
        assert_eq!(ask(sidecars[1].address(), &keyed("kept"), ORDER).body, "order 1");
    }

    postgres.kill();
    let replayed = ask(sidecars[1].address(), &keyed("kept"), ORDER);
    assert_eq!((replayed.status(), replayed.body.as_str()), (201, "order 1"), "the replay comes from Redis");
    assert_eq!(replayed.header("x-idempotent-replayed"), Some("true"));
    assert_eq!(ask(sidecars[1].address(), &keyed("fresh"), ORDER).status(), 503);
    alone(|| postgres.restart());
    sidecars.iter().for_each(until_ready);

    // Without Redis, replays are only slower.
    redis.kill();
    assert_eq!(ask(sidecars[0].address(), &keyed("kept"), ORDER).body, "order 1");
    assert_eq!(ask(sidecars[0].address(), &keyed("later"), ORDER).body, "order 2");
    alone(|| redis.restart());

    let run = |args: &[&str]| hapax(fixture.path(), &[args, &stores].concat());
    let listed = run(&["records", "list", "--json"]).ended(0).json();
    for record in listed["records"].as_array().unwrap() {
        run(&["records", "delete", record["id"].as_str().unwrap(), "--yes"]).ended(0);
    }
    assert_eq!(ask(sidecars[1].address(), &keyed("kept"), ORDER).body, "order 3", "it was deleted");
    let checked = run(&["check"]).ended(0).stdout;
    assert!(checked.contains(" behind redis://"), "{checked}");
}

#[test]
fn unsupported_fast_tiers_are_refused() {
    let fixture = Fixture::bare();
    let refused = |store: &str, fast: &str| {
        hapax(fixture.path(), &["check", "--store", store, "--fast", fast])
            .failed(2, "store-url-invalid")
            .stderr
    };
    assert!(refused("file:./data", "redis://127.0.0.1").contains("supports no fast tier"));
    assert!(refused("redis://127.0.0.1", "redis://127.0.0.1").contains("supports no fast tier"));
    assert!(refused("postgres://127.0.0.1/shop", "redis://127.0.0.1").contains("it has no prefix"));
    let wrong = refused("postgres://127.0.0.1/shop", "http://user:canary-password@127.0.0.1");
    assert!(
        wrong.contains("the fast tier: the store's URL is wrong") && !wrong.contains("canary"),
        "{wrong}"
    );
}
