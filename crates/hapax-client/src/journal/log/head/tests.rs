use super::*;

fn read(bytes: &[u8]) -> Result<Option<Head>, JournalError> {
    Head::read(bytes, Path::new("calls.log"))
}

#[test]
fn a_head_is_read_back() {
    let head = Head { seed: 7, synced: 24 };
    assert_eq!(read(&head.encode()).unwrap(), Some(head));
    assert_eq!(read(&[]).unwrap(), None);
}

#[test]
fn a_part_of_a_head_is_damage_at_any_length() {
    let head = Head { seed: 7, synced: 24 }.encode();
    for length in 1..LENGTH {
        assert!(matches!(read(&head[..length]), Err(JournalError::Damaged { .. })), "cut at {length}");
    }
}

#[test]
fn a_flipped_bit_in_a_head_is_found() {
    let head = Head { seed: 7, synced: 24 }.encode();
    for at in 0..LENGTH {
        let mut damaged = head;
        damaged[at] ^= 1;
        match read(&damaged) {
            Err(JournalError::Foreign { .. }) => assert!(at < SEED, "byte {at}"),
            Err(JournalError::Damaged { .. }) => assert!(at >= SEED, "byte {at}"),
            other => panic!("byte {at}: {other:?}"),
        }
    }
}

#[test]
fn a_file_that_is_shorter_than_what_was_synced_is_damaged() {
    let head = Head { seed: 7, synced: LENGTH as u64 + 1 };
    let at = LENGTH as u64;
    assert!(matches!(read(&head.encode()), Err(JournalError::Damaged { at: found, .. }) if found == at));
}
