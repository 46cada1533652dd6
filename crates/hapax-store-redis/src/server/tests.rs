use hapax_core::Promise;

use super::{Eviction, Membership, Server};
use crate::error::OpenError;
use crate::script::CommandSet;

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
fn a_durable_server_without_replicas_is_at_most_once() {
    let evaluated =
        Server::evaluate(&info(&[]), Some("always"), Eviction::Refuse, Membership::Alone).unwrap();
    assert_eq!(
        evaluated,
        Server { commands: CommandSet::Redis7, promise: Promise::AtMostOnce, warnings: vec![], evicts: None }
    );
}

#[test]
fn any_risk_of_losing_a_claim_is_best_effort() {
    let table = [
        (("aof_enabled", "1"), Some("everysec"), "everysec"),
        (("aof_enabled", "1"), Some("no"), "appendfsync is no"),
        (("aof_enabled", "1"), None, "does not reveal"),
        (("aof_enabled", "0"), Some("always"), "appendonly is off"),
        (("connected_slaves", "1"), Some("always"), "replicas"),
        (("maxmemory_policy", "allkeys-lru"), Some("always"), "evicted"),
    ];
    for (change, appendfsync, warning) in table {
        let evaluated =
            Server::evaluate(&info(&[change]), appendfsync, Eviction::Accept, Membership::Alone).unwrap();
        assert_eq!(evaluated.promise, Promise::BestEffort, "{warning}");
        assert!(evaluated.warnings.iter().any(|text| text.contains(warning)), "{:?}", evaluated.warnings);
    }
}

#[test]
fn a_server_that_evicts_takes_no_claims_unless_that_is_accepted() {
    let evaluated = |changes: &[(&str, &str)], eviction| {
        Server::evaluate(&info(changes), Some("always"), eviction, Membership::Alone).unwrap().takes_claims()
    };
    let evicts = [("maxmemory_policy", "volatile-lru")];
    let policy = "volatile-lru".to_owned();
    assert_eq!(evaluated(&evicts, Eviction::Refuse), Err(OpenError::Evicts { policy }));
    assert_eq!(evaluated(&evicts, Eviction::Accept), Ok(()));
    assert_eq!(evaluated(&[("maxmemory", "0"), evicts[0]], Eviction::Refuse), Ok(()), "it is never full");
}

#[test]
fn accepts_supported_versions() {
    for (version, expected) in [
        ("6.2.0", Some(CommandSet::Redis6)),
        ("6.2.14", Some(CommandSet::Redis6)),
        ("7.0.0", Some(CommandSet::Redis7)),
        ("10.1", Some(CommandSet::Redis7)),
        ("6.0.20", None),
        ("5.0.14", None),
        ("", None),
        ("seven", None),
    ] {
        let evaluated = Server::evaluate(
            &info(&[("redis_version", version)]),
            Some("always"),
            Eviction::Refuse,
            Membership::Alone,
        );
        match (evaluated, expected) {
            (Ok(server), Some(commands)) => assert_eq!(server.commands, commands, "{version}"),
            (Err(OpenError::Version { found }), None) => assert_eq!(found, version),
            (evaluated, _) => panic!("{version}: {evaluated:?}"),
        }
    }
}

#[test]
fn a_possible_failover_is_best_effort() {
    for replicas in ["0", "1"] {
        let evaluated = Server::evaluate(
            &info(&[("connected_slaves", replicas)]),
            Some("always"),
            Eviction::Refuse,
            Membership::Alone,
        );
        let evaluated = evaluated.unwrap().with_failover();
        assert_eq!(
            (evaluated.promise, evaluated.warnings.len()),
            (Promise::BestEffort, 1),
            "{:?}",
            evaluated.warnings
        );
    }
}

#[test]
fn cluster_members_and_single_servers_are_distinguished() {
    for (enabled, membership, is_taken) in [
        ("0", Membership::Alone, true),
        ("1", Membership::Member, true),
        ("1", Membership::Alone, false),
        ("0", Membership::Member, false),
    ] {
        let evaluated =
            Server::evaluate(&info(&[("cluster_enabled", enabled)]), None, Eviction::Refuse, membership);
        assert_eq!(evaluated.is_ok(), is_taken, "{enabled} {membership:?}: {evaluated:?}");
    }
}

#[test]
fn several_servers_promise_what_the_weakest_promises() {
    let evaluate = |appendfsync| {
        Server::evaluate(&info(&[]), Some(appendfsync), Eviction::Refuse, Membership::Alone).unwrap()
    };
    let named = |name: &str, server| (name.to_owned(), server);
    let together =
        Server::together(vec![named("a:1", evaluate("always")), named("b:2", evaluate("no"))]).unwrap();
    assert_eq!(together.promise, Promise::BestEffort);
    assert!(together.warnings[0].ends_with("(on b:2)"), "{:?}", together.warnings);
    let together =
        Server::together(vec![named("a:1", evaluate("no")), named("b:2", evaluate("no"))]).unwrap();
    assert_eq!(together.warnings, evaluate("no").warnings, "a warning about all servers appears once");
    assert_eq!(Server::together(Vec::new()), None);
}
