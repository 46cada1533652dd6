use hapax_core::Promise;

use super::{Eviction, Server};
use crate::error::OpenError;
use crate::script::Dialect;

fn info(changes: &[(&str, &str)]) -> String {
    let mut fields = [
        ("redis_version", "7.0.15"),
        ("role", "master"),
        ("cluster_enabled", "0"),
        ("maxmemory", "1000"),
        ("maxmemory_policy", "noeviction"),
        ("aof_enabled", "1"),
        ("connected_slaves", "0"),
    ];
    for (name, value) in changes {
        let field = fields.iter_mut().find(|(known, _)| known == name).unwrap();
        field.1 = value;
    }
    fields.iter().map(|(name, value)| format!("{name}:{value}\r\n")).collect()
}

#[test]
fn a_durable_server_without_replicas_holds_the_promise() {
    let judged = Server::judge(&info(&[]), Some("always"), Eviction::Refuse).unwrap();
    assert_eq!(judged, Server { dialect: Dialect::Seven, promise: Promise::AtMostOnce, warnings: vec![] });
}

#[test]
fn everything_that_may_lose_a_claim_is_best_effort() {
    let table = [
        (("aof_enabled", "1"), Some("everysec"), "everysec"),
        (("aof_enabled", "1"), Some("no"), "appendfsync is no"),
        (("aof_enabled", "1"), None, "does not tell"),
        (("aof_enabled", "0"), Some("always"), "appendonly is off"),
        (("connected_slaves", "1"), Some("always"), "replicas"),
        (("maxmemory_policy", "allkeys-lru"), Some("always"), "dropped"),
    ];
    for (change, appendfsync, warning) in table {
        let judged = Server::judge(&info(&[change]), appendfsync, Eviction::Accept).unwrap();
        assert_eq!(judged.promise, Promise::BestEffort, "{warning}");
        assert!(judged.warnings.iter().any(|told| told.contains(warning)), "{:?}", judged.warnings);
    }
}

#[test]
fn versions_are_told_apart() {
    for (version, expected) in [
        ("6.2.0", Some(Dialect::Six)),
        ("6.2.14", Some(Dialect::Six)),
        ("7.0.0", Some(Dialect::Seven)),
        ("10.1", Some(Dialect::Seven)),
        ("6.0.20", None),
        ("5.0.14", None),
        ("", None),
        ("seven", None),
    ] {
        let judged = Server::judge(&info(&[("redis_version", version)]), Some("always"), Eviction::Refuse);
        match (judged, expected) {
            (Ok(server), Some(dialect)) => assert_eq!(server.dialect, dialect, "{version}"),
            (Err(OpenError::Version { found }), None) => assert_eq!(found, version),
            (judged, _) => panic!("{version}: {judged:?}"),
        }
    }
}

#[test]
fn where_a_failover_is_possible_nothing_more_is_promised() {
    for replicas in ["0", "1"] {
        let judged =
            Server::judge(&info(&[("connected_slaves", replicas)]), Some("always"), Eviction::Refuse);
        let judged = judged.unwrap().with_failover();
        assert_eq!(
            (judged.promise, judged.warnings.len()),
            (Promise::BestEffort, 1),
            "{:?}",
            judged.warnings
        );
    }
}
