use std::collections::HashSet;
use std::mem::discriminant;

use super::{Doses, Fault, LEASE, Link, NetworkFault, faults};
use crate::chaos::Setting;
use crate::crash::seed::Seed;

const DOSES: Doses =
    Doses { kills: 60, pauses: 30, cuts: 60, restarts: 15, pooler_restarts: 10, moves: 8, clock_steps: 15 };

#[test]
fn the_same_seed_makes_the_same_faults_and_another_one_others() {
    let drawn = |seed| faults(&Seed::new(seed), DOSES, Setting::Redis);
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
}

#[test]
fn every_kind_comes_as_often_as_it_is_asked_for_and_not_in_a_row() {
    let drawn = faults(&Seed::new(7), DOSES, Setting::Redis);
    let count = |is_kind: fn(&Fault) -> bool| drawn.iter().filter(|fault| is_kind(fault)).count();
    assert_eq!(count(|fault| matches!(fault, Fault::Kill { .. })), 60);
    assert_eq!(count(|fault| matches!(fault, Fault::Pause { .. } | Fault::ServerPause { .. })), 30);
    assert_eq!(count(|fault| matches!(fault, Fault::ServerPause { .. })), 5);
    assert_eq!(count(|fault| matches!(fault, Fault::Network { .. })), 60);
    assert_eq!(count(|fault| matches!(fault, Fault::ServerCrash)), 15);
    assert_eq!(count(|fault| matches!(fault, Fault::Clock { .. })), 15);
    assert_eq!(drawn.len() as u64, DOSES.of(Setting::Redis).in_all());
    let kinds: HashSet<_> = drawn[..20].iter().map(discriminant).collect();
    assert!(kinds.len() > 2, "they are not mixed: {:?}", &drawn[..20]);
}

#[test]
fn every_network_fault_and_every_sidecar_has_its_turn() {
    let drawn = faults(&Seed::new(7), DOSES, Setting::Redis);
    let networks: Vec<(usize, Link, NetworkFault)> = drawn
        .iter()
        .filter_map(|fault| match fault {
            Fault::Network { sidecar, link, fault, .. } => Some((*sidecar, *link, *fault)),
            _ => None,
        })
        .collect();
    for (position, link) in [(0, Link::Store), (1, Link::Upstream)] {
        let here = || networks.iter().filter(|(_, known, _)| *known == link);
        let kinds: HashSet<_> = here().map(|(_, _, fault)| discriminant(fault)).collect();
        let sidecars: HashSet<_> = here().map(|(sidecar, ..)| *sidecar).collect();
        assert_eq!((kinds.len(), sidecars.len()), (6, 3), "link {position}");
    }
}

#[test]
fn pauses_of_sidecars_outlast_their_leases() {
    for fault in faults(&Seed::new(7), DOSES, Setting::Redis) {
        assert!(!matches!(fault, Fault::Pause { span, .. } if span <= LEASE), "{fault:?}");
    }
}

#[test]
fn what_a_store_does_not_have_does_not_fail() {
    let file = faults(&Seed::new(7), DOSES, Setting::File);
    assert_eq!(file.len() as u64, DOSES.of(Setting::File).in_all());
    for fault in file {
        let is_there = match fault {
            Fault::ServerCrash | Fault::PoolerCrash | Fault::Move { .. } | Fault::ServerPause { .. } => false,
            Fault::Network { sidecar, link, .. } => link == Link::Upstream && sidecar == 0,
            Fault::Kill { sidecar, .. } | Fault::Pause { sidecar, .. } | Fault::Clock { sidecar, .. } => {
                sidecar == 0
            }
        };
        assert!(is_there, "{fault:?}");
    }
    let dynamodb = faults(&Seed::new(7), DOSES, Setting::DynamoDb);
    assert!(!dynamodb.contains(&Fault::ServerCrash));
    assert!(dynamodb.iter().any(|fault| matches!(fault, Fault::ServerPause { .. })));
    let sentinel = faults(&Seed::new(7), DOSES, Setting::RedisSentinel);
    assert!(!sentinel.iter().any(|fault| matches!(fault, Fault::Network { link: Link::Store, .. })));
}

#[test]
fn a_pooler_crashes_and_slots_move_where_there_are_any() {
    let settings =
        [(Setting::Postgres, 0, 0), (Setting::PostgresPooled, 10, 0), (Setting::RedisCluster, 0, 8)];
    for (setting, crashes, moves) in settings {
        let drawn = faults(&Seed::new(7), DOSES, setting);
        let crashed = drawn.iter().filter(|fault| **fault == Fault::PoolerCrash).count();
        let moved = drawn.iter().filter(|fault| matches!(fault, Fault::Move { .. })).count();
        assert_eq!((crashed, moved), (crashes, moves), "{setting:?}");
        assert_eq!(drawn.len() as u64, DOSES.of(setting).in_all(), "{setting:?}");
    }
}
