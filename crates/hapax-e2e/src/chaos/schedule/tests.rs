use std::collections::HashSet;
use std::mem::discriminant;

use super::{Doses, LEASE, NetworkFault, NetworkLink, ScheduledFault, faults};
use crate::chaos::Setting;
use hapax_testkit::Random;

const DOSES: Doses =
    Doses { kills: 60, pauses: 30, cuts: 60, restarts: 15, pooler_restarts: 10, moves: 8, clock_steps: 15 };

#[test]
fn a_schedule_depends_on_its_seed() {
    let drawn = |seed| faults(Random::seeded(seed), DOSES, Setting::Redis);
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
}

#[test]
fn every_kind_comes_as_often_as_its_dose_in_mixed_order() {
    let drawn = faults(Random::seeded(7), DOSES, Setting::Redis);
    let count = |is_kind: fn(&ScheduledFault) -> bool| drawn.iter().filter(|fault| is_kind(fault)).count();
    assert_eq!(count(|fault| matches!(fault, ScheduledFault::Kill { .. })), 60);
    assert_eq!(
        count(|fault| matches!(fault, ScheduledFault::Pause { .. } | ScheduledFault::ServerPause { .. })),
        30
    );
    assert_eq!(count(|fault| matches!(fault, ScheduledFault::ServerPause { .. })), 5);
    assert_eq!(count(|fault| matches!(fault, ScheduledFault::Network { .. })), 60);
    assert_eq!(count(|fault| matches!(fault, ScheduledFault::ServerCrash)), 15);
    assert_eq!(count(|fault| matches!(fault, ScheduledFault::Clock { .. })), 15);
    assert_eq!(drawn.len() as u64, DOSES.of(Setting::Redis).total());
    let kinds: HashSet<_> = drawn[..20].iter().map(discriminant).collect();
    assert!(kinds.len() > 2, "they are not mixed: {:?}", &drawn[..20]);
}

#[test]
fn every_network_fault_hits_every_link_and_every_sidecar_is_hit() {
    let drawn = faults(Random::seeded(7), DOSES, Setting::Redis);
    let networks: Vec<(usize, NetworkLink, NetworkFault)> = drawn
        .iter()
        .filter_map(|fault| match fault {
            ScheduledFault::Network { sidecar, link, fault, .. } => Some((*sidecar, *link, *fault)),
            _ => None,
        })
        .collect();
    for (position, link) in [(0, NetworkLink::Store), (1, NetworkLink::Upstream)] {
        let here = || networks.iter().filter(|(_, known, _)| *known == link);
        let kinds: HashSet<_> = here().map(|(_, _, fault)| discriminant(fault)).collect();
        let sidecars: HashSet<_> = here().map(|(sidecar, ..)| *sidecar).collect();
        assert_eq!((kinds.len(), sidecars.len()), (6, 3), "link {position}");
    }
}

#[test]
fn pauses_of_sidecars_outlast_their_leases() {
    for fault in faults(Random::seeded(7), DOSES, Setting::Redis) {
        assert!(!matches!(fault, ScheduledFault::Pause { span, .. } if span <= LEASE), "{fault:?}");
    }
}

#[test]
fn faults_that_do_not_apply_to_a_store_are_left_out() {
    let file = faults(Random::seeded(7), DOSES, Setting::File);
    assert_eq!(file.len() as u64, DOSES.of(Setting::File).total());
    for fault in file {
        let is_there = match fault {
            ScheduledFault::ServerCrash
            | ScheduledFault::PoolerCrash
            | ScheduledFault::Move { .. }
            | ScheduledFault::ServerPause { .. } => false,
            ScheduledFault::Network { sidecar, link, .. } => link == NetworkLink::Upstream && sidecar == 0,
            ScheduledFault::Kill { sidecar, .. }
            | ScheduledFault::Pause { sidecar, .. }
            | ScheduledFault::Clock { sidecar, .. } => sidecar == 0,
        };
        assert!(is_there, "{fault:?}");
    }
    let dynamodb = faults(Random::seeded(7), DOSES, Setting::DynamoDb);
    assert!(!dynamodb.contains(&ScheduledFault::ServerCrash));
    assert!(dynamodb.iter().any(|fault| matches!(fault, ScheduledFault::ServerPause { .. })));
    let sentinel = faults(Random::seeded(7), DOSES, Setting::RedisSentinel);
    assert!(
        !sentinel
            .iter()
            .any(|fault| matches!(fault, ScheduledFault::Network { link: NetworkLink::Store, .. }))
    );
}

#[test]
fn poolers_crash_and_slots_move_only_where_they_exist() {
    let settings =
        [(Setting::Postgres, 0, 0), (Setting::PostgresPooled, 10, 0), (Setting::RedisCluster, 0, 8)];
    for (setting, crashes, moves) in settings {
        let drawn = faults(Random::seeded(7), DOSES, setting);
        let crashed = drawn.iter().filter(|fault| **fault == ScheduledFault::PoolerCrash).count();
        let moved = drawn.iter().filter(|fault| matches!(fault, ScheduledFault::Move { .. })).count();
        assert_eq!((crashed, moved), (crashes, moves), "{setting:?}");
        assert_eq!(drawn.len() as u64, DOSES.of(setting).total(), "{setting:?}");
    }
}
