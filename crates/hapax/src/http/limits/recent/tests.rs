use super::RecentMap;

#[test]
fn s_06_the_number_of_entries_is_limited() {
    let mut recent = RecentMap::<u32, u32>::new(10);
    for key in 0..1000 {
        *recent.entry(key) = key;
        assert!(recent.young.len() + recent.old.len() <= 10);
        assert!((key.saturating_sub(4)..=key).all(|key| recent.get(&key) == Some(&key)), "{key}");
    }
    assert_eq!(recent.get(&0), None);
}

#[test]
fn s_06_recently_used_entries_are_kept() {
    let mut recent = RecentMap::<u32, u32>::new(10);
    for key in 1..1000 {
        *recent.entry(0) += 1;
        *recent.entry(key) += 1;
        assert_eq!(recent.get(&0), Some(&key));
    }
}
