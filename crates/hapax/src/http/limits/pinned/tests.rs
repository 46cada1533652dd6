use std::time::Duration;

use super::{STEPS, StoredBytesByExpiry};

const DAY: Duration = Duration::from_secs(86_400);
const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn s_06_bytes_count_slightly_longer_than_they_are_stored() {
    let mut pinned = StoredBytesByExpiry::default();
    pinned.add(100, DAY, MINUTE);
    assert_eq!(pinned.room_after(101, MINUTE), None);
    let wait = pinned.room_after(100, MINUTE).unwrap();
    assert!((DAY..DAY + DAY / STEPS as u32).contains(&wait), "{wait:?}");
    assert!(pinned.room_after(100, DAY).is_some());
    assert_eq!(pinned.room_after(100, MINUTE + wait), None);
}

#[test]
fn s_06_there_is_room_when_enough_has_expired() {
    let mut pinned = StoredBytesByExpiry::default();
    pinned.add(10, MINUTE, Duration::ZERO);
    pinned.add(10, 2 * MINUTE, Duration::ZERO);
    pinned.add(10, 3 * MINUTE, Duration::ZERO);
    let waits = [31, 30, 20, 10].map(|bytes_max| pinned.room_after(bytes_max, Duration::ZERO));
    let rounded_up = |span: Duration, wait: Option<Duration>| {
        wait.is_some_and(|wait| wait >= span && wait < span + span / STEPS as u32)
    };
    assert_eq!(waits[0], None);
    assert!((1..=3).all(|n| rounded_up(n * MINUTE, waits[n as usize])), "{waits:?}");
}

#[test]
fn s_06_the_number_of_entries_is_bounded() {
    let mut pinned = StoredBytesByExpiry::default();
    for second in 0..2 * 86_400 {
        pinned.add(1, DAY, Duration::from_secs(second));
        assert!(pinned.expiring.len() <= STEPS as usize + 1);
    }
    let kept: u64 = pinned.expiring.iter().map(|(_, bytes)| bytes).sum();
    assert!((86_400..=86_400 + 86_400 / STEPS).contains(&kept), "{kept}");
}

#[test]
fn s_06_zero_and_extreme_values_are_counted() {
    let mut pinned = StoredBytesByExpiry::default();
    pinned.add(0, DAY, Duration::ZERO);
    pinned.add(10, Duration::ZERO, Duration::ZERO);
    assert_eq!(pinned.room_after(1, Duration::ZERO), None);
    pinned.add(u64::MAX, Duration::MAX, DAY);
    pinned.add(u64::MAX, DAY, DAY);
    assert!(pinned.room_after(u64::MAX, DAY).is_some());
}
