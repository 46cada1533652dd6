use hapax_core::Promise;

use super::Settings;
use crate::error::OpenError;

fn durable() -> Settings {
    Settings {
        version: 150_018,
        is_standby: false,
        is_read_only: false,
        has_fsync: true,
        has_full_pages: true,
        commits: "on".to_owned(),
        has_synchronous_standbys: false,
        standbys: 0,
    }
}

#[test]
fn a_durable_server_is_at_most_once() {
    let with_standby = Settings { has_synchronous_standbys: true, standbys: 2, ..durable() };
    for settings in [durable(), Settings { commits: "local".to_owned(), ..durable() }, with_standby] {
        let assessed = settings.assess().unwrap();
        assert_eq!((assessed.promise, assessed.warnings.len()), (Promise::AtMostOnce, 0), "{settings:?}");
    }
}

#[test]
fn any_risk_of_losing_a_claim_is_best_effort() {
    let synchronous = Settings { has_synchronous_standbys: true, standbys: 1, ..durable() };
    let table = [
        (Settings { has_fsync: false, ..durable() }, "fsync is off"),
        (Settings { has_full_pages: false, ..durable() }, "full_page_writes"),
        (Settings { commits: "off".to_owned(), ..durable() }, "synchronous_commit is off"),
        (Settings { standbys: 1, ..durable() }, "standbys"),
        (Settings { commits: "local".to_owned(), ..synchronous }, "standbys"),
    ];
    for (settings, warning) in table {
        let assessed = settings.assess().unwrap();
        assert_eq!(assessed.promise, Promise::BestEffort, "{warning}");
        assert!(assessed.warnings.iter().any(|text| text.contains(warning)), "{:?}", assessed.warnings);
    }
}

#[test]
fn unusable_servers_are_refused() {
    let table = [
        (Settings { version: 110_022, ..durable() }, OpenError::Version { found: 110_022 }),
        (Settings { is_standby: true, is_read_only: true, ..durable() }, OpenError::Standby),
        (Settings { is_read_only: true, ..durable() }, OpenError::ReadOnly),
    ];
    for (settings, refused) in table {
        assert_eq!(settings.assess(), Err(refused));
    }
}
