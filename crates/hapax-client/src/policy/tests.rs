use proptest::prelude::*;

use super::*;

#[test]
fn c_03_the_defaults_are_two_retries_from_half_a_second_to_eight() {
    let policy = RetryPolicy::default();
    assert_eq!(policy.retries_max, 2);
    let maxima: Vec<u128> = (0..6).map(|earlier| policy.pause_max(earlier).as_millis()).collect();
    assert_eq!(maxima, [500, 1000, 2000, 4000, 8000, 8000]);
}

#[test]
fn c_03_many_retries_do_not_overflow_the_pause() {
    assert_eq!(RetryPolicy::default().pause_max(u32::MAX), CAP);
    let endless = RetryPolicy::default().base(Duration::MAX).cap(Duration::MAX);
    assert!(endless.pause(u32::MAX, u64::MAX) > CAP);
}

proptest! {
    #[test]
    fn c_03_a_pause_is_at_most_the_doubled_base_and_the_cap(
        base_ms in 0_u64..100_000, cap_ms in 0_u64..100_000, earlier in 0_u32..80, random: u64,
    ) {
        let (base, cap) = (Duration::from_millis(base_ms), Duration::from_millis(cap_ms));
        let pause = RetryPolicy::default().base(base).cap(cap).pause(earlier, random);
        prop_assert!(pause <= cap);
        prop_assert!(pause <= base.saturating_mul(1_u32.checked_shl(earlier).unwrap_or(u32::MAX)));
    }

    #[test]
    fn c_03_a_pause_is_any_part_of_its_maximum(earlier in 0_u32..10, random: u64) {
        let policy = RetryPolicy::default();
        let part = random as f64 / u64::MAX as f64;
        let expected = policy.pause_max(earlier).as_secs_f64() * part;
        prop_assert!((policy.pause(earlier, random).as_secs_f64() - expected).abs() < 0.001);
    }
}
