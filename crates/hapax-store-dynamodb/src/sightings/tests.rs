use std::time::Duration;

use hapax_core::{RecordId, Timestamp};

use super::Sightings;
use crate::item::Version;

const LEASE: Duration = Duration::from_secs(30);

fn id(number: u8) -> RecordId {
    RecordId::from_bytes([number; 32])
}

#[test]
fn a_version_is_observed_from_its_first_sighting() {
    let seen = Sightings::new(10);
    let start = Timestamp::from_millis(1000);
    let (first, second) = (Version::random(), Version::random());
    assert_eq!(seen.observed_for(&id(1), first, start), Duration::ZERO);
    assert_eq!(seen.observed_for(&id(1), first, start.after(LEASE)), LEASE);
    assert_eq!(seen.observed_for(&id(1), second, start.after(LEASE)), Duration::ZERO, "it was renewed");
    assert_eq!(seen.observed_for(&id(1), second, start.after(LEASE * 2)), LEASE);
    seen.forget(&id(1));
    assert_eq!(seen.observed_for(&id(1), second, start.after(LEASE * 3)), Duration::ZERO);
}

#[test]
fn the_number_of_sightings_is_bounded() {
    let seen = Sightings::new(10);
    let versions: Vec<Version> = (0..100).map(|_| Version::random()).collect();
    let start = Timestamp::default();
    for (number, version) in versions.iter().enumerate() {
        seen.observed_for(&id(number as u8), *version, start);
        // One that is seen again and again is kept.
        assert_eq!(seen.observed_for(&id(0), versions[0], start.after(LEASE)), LEASE);
        let generations = seen.generations.lock();
        assert!(generations.young.len() + generations.old.len() <= 10);
    }
    assert_eq!(
        seen.observed_for(&id(1), versions[1], start.after(LEASE)),
        Duration::ZERO,
        "it was forgotten"
    );
}
