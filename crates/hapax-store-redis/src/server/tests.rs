use hapax_core::Promise;

use super::{Eviction, Membership, Server};
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
    let judged = Server::judge(&info(&[]), Some("always"), Eviction::Refuse, Membership::Alone).unwrap();
    assert_eq!(
        judged,
        Server { dialect: Dialect::Seven, promise: Promise::AtMostOnce, warnings: vec![], evicts: None }
    );
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
        let judged =
            Server::judge(&info(&[change]), appendfsync, Eviction::Accept, Membership::Alone).unwrap();
        assert_eq!(judged.promise, Promise::BestEffort, "{warning}");
        assert!(judged.warnings.iter().any(|told| told.contains(warning)), "{:?}", judged.warnings);
    }
}

#[test]
fn a_server_that_evicts_takes_no_claims_unless_that_is_accepted() {
    let judged = |changes: &[(&str, &str)], eviction| {
        Server::judge(&info(changes), Some("always"), eviction, Membership::Alone).unwrap().takes_claims()
    };
    let evicts = [("maxmemory_policy", "volatile-lru")];
    let policy = "volatile-lru".to_owned();
    assert_eq!(judged(&evicts, Eviction::Refuse), Err(OpenError::Evicts { policy }));
    assert_eq!(judged(&evicts, Eviction::Accept), Ok(()));
    assert_eq!(judged(&[("maxmemory", "0"), evicts[0]], Eviction::Refuse), Ok(()), "it is never full");
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
        let judged = Server::judge(
            &info(&[("redis_version", version)]),
            Some("always"),
            Eviction::Refuse,
            Membership::Alone,
        );
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
        let judged = Server::judge(
            &info(&[("connected_slaves", replicas)]),
            Some("always"),
            Eviction::Refuse,
            Membership::Alone,
        );
        let judged = judged.unwrap().with_failover();
        assert_eq!(
            (judged.promise, judged.warnings.len()),
            (Promise::BestEffort, 1),
            "{:?}",
            judged.warnings
        );
    }
}

#[test]
fn a_member_of_a_cluster_and_a_server_alone_are_told_apart() {
    for (enabled, membership, is_taken) in [
        ("0", Membership::Alone, true),
        ("1", Membership::Member, true),
        ("1", Membership::Alone, false),
        ("0", Membership::Member, false),
    ] {
        let judged =
            Server::judge(&info(&[("cluster_enabled", enabled)]), None, Eviction::Refuse, membership);
        assert_eq!(judged.is_ok(), is_taken, "{enabled} {membership:?}: {judged:?}");
    }
}

#[test]
fn several_servers_promise_what_the_weakest_does() {
    let judge = |appendfsync| {
        Server::judge(&info(&[]), Some(appendfsync), Eviction::Refuse, Membership::Alone).unwrap()
    };
    let named = |name: &str, server| (name.to_owned(), server);
    let together = Server::together(vec![named("a:1", judge("always")), named("b:2", judge("no"))]).unwrap();
    assert_eq!(together.promise, Promise::BestEffort);
    assert!(together.warnings[0].ends_with("(on b:2)"), "{:?}", together.warnings);
    let together = Server::together(vec![named("a:1", judge("no")), named("b:2", judge("no"))]).unwrap();
    assert_eq!(together.warnings, judge("no").warnings, "what all have in common is told once");
    assert_eq!(Server::together(Vec::new()), None);
}
