use hapax_core::Key;

use super::*;
use crate::journal::stored::tests::stored;

const SEED: u32 = 7;

fn opened(id: u64, synced: usize) -> Vec<u8> {
    let call = stored(&format!("key-{id}"), b"{\"item\":\"book\"}");
    frame::encode(SEED, synced as u64, &Event::Opened { id, call: call.head() }, call.body())
}

fn closed(id: u64, synced: usize) -> Vec<u8> {
    frame::encode(SEED, synced as u64, &Event::Closed { id }, &[])
}

fn ids(bytes: &[u8]) -> Result<Vec<u64>, u64> {
    read(SEED, bytes, 0, 0).map(|recovered| recovered.calls.into_keys().collect())
}

#[test]
fn c_04_open_calls_are_read_back() {
    let log = [opened(1, 0), opened(2, 0), closed(1, 0)].concat();
    let recovered = read(SEED, &log, 0, 0).unwrap();
    let call = &recovered.calls[&2];
    assert_eq!((recovered.calls.len(), call.is_uncertain, recovered.is_clean), (1, false, false));
    assert_eq!(call.size, opened(2, 0).len() as u64);
    let call = &call.stored;
    let listed = call.listed(2, crate::OpenCallState::Open);
    assert_eq!(listed.key, Key::new("key-2").unwrap());
    assert_eq!(call.body(), b"{\"item\":\"book\"}");
}

#[test]
fn a_torn_tail_at_any_byte_loses_only_the_last_frame() {
    let first = opened(1, 0);
    let log = [first.clone(), opened(2, first.len())].concat();
    for length in first.len()..log.len() {
        assert_eq!(ids(&log[..length]), Ok(vec![1]), "cut at {length}");
        let mut zeroed = log[..length].to_vec();
        zeroed.resize(log.len() + 512, 0);
        assert_eq!(ids(&zeroed), Ok(vec![1]), "zeroes from {length}");
    }
    assert_eq!(ids(&log), Ok(vec![1, 2]));
}

#[test]
fn damage_before_a_later_call_is_reported_at_any_byte() {
    let first = opened(1, 0);
    let log = [first.clone(), opened(2, 0)].concat();
    for at in 0..first.len() {
        let mut damaged = log.clone();
        damaged[at] ^= 0x10;
        assert_eq!(ids(&damaged), Err(0), "byte {at}");
    }
}

#[test]
fn damage_of_what_was_synced_is_reported() {
    let first = opened(1, 0);
    let mut log = [first.clone(), opened(2, 0), closed(1, first.len() + 1)].concat();
    let second = first.len() + 20;
    log[second] ^= 1;
    assert_eq!(ids(&log), Err(first.len() as u64));
}

#[test]
fn a_lost_page_of_what_was_never_synced_is_torn() {
    let first = opened(1, 0);
    let mut log = [first.clone(), closed(1, first.len()), closed(9, first.len())].concat();
    log[first.len() + 20] ^= 1;
    assert_eq!(ids(&log), Ok(vec![1]));
}

#[test]
fn frames_inside_of_a_body_are_no_frames() {
    let smuggled = frame::encode(SEED + 1, u64::MAX, &Event::Closed { id: 1 }, &[]);
    let call = stored("key-3", &smuggled);
    let holder = frame::encode(SEED, 0, &Event::Opened { id: 3, call: call.head() }, call.body());
    let log = [opened(1, 0), holder].concat();
    assert_eq!(ids(&log[..log.len() - 1]), Ok(vec![1]));
    assert_eq!(ids(&log), Ok(vec![1, 3]));
}

#[test]
fn damage_of_the_last_call_that_was_synced_is_reported_at_any_byte() {
    let first = opened(1, 0);
    let log = [first.clone(), opened(2, first.len())].concat();
    for at in first.len()..log.len() {
        let mut damaged = log.clone();
        damaged[at] ^= 0x10;
        let is_read = |synced: usize| read(SEED, &damaged, 0, synced as u64).map(|read| read.calls.len());
        assert_eq!(is_read(log.len()), Err(first.len() as u64), "byte {at}");
        assert_eq!(is_read(first.len()), Ok(1), "byte {at} was never synced");
    }
}
