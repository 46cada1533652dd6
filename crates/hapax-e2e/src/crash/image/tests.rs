use super::*;

const PATH: &str = "data";

fn write(offset: u64, data: &[u8]) -> Entry {
    Entry::Write { path: PATH.into(), offset, data: data.to_vec() }
}

/// Every image that a few hundred power losses leave of the one file.
fn images(entries: &[Entry]) -> BTreeSet<Option<Vec<u8>>> {
    let mut disk = Disk { dirs: BTreeSet::from([PathBuf::new()]), ..Disk::default() };
    let mut seed = Seed::new(1);
    entries.iter().for_each(|entry| disk.play(entry, &mut seed));
    (0..300)
        .map(|_| {
            let dir = tempfile::tempdir().unwrap();
            disk.lose_power(dir.path(), &mut seed).unwrap();
            fs::read(dir.path().join(PATH)).ok()
        })
        .collect()
}

#[test]
fn what_was_synced_is_always_there() {
    let found = images(&[write(0, b"kept"), Entry::Sync(PATH.into())]);
    assert_eq!(found, BTreeSet::from([Some(b"kept".to_vec())]));
}

#[test]
fn what_was_not_synced_may_be_there_or_not() {
    let found = images(&[write(0, b"old"), Entry::Sync(PATH.into()), write(0, b"new")]);
    assert_eq!(found, BTreeSet::from([Some(b"old".to_vec()), Some(b"new".to_vec())]));
}

#[test]
fn an_unsynced_write_is_torn_at_its_sectors_in_any_order() {
    let old = [b'o'; 1024];
    let found = images(&[write(0, &old), Entry::Sync(PATH.into()), write(0, &[b'n'; 1024])]);
    let image = |first, second| Some([[first; 512], [second; 512]].concat());
    let all = [(b'o', b'o'), (b'o', b'n'), (b'n', b'o'), (b'n', b'n')];
    assert_eq!(found, all.map(|(first, second)| image(first, second)).into());
}

#[test]
fn a_failed_sync_is_not_made_good_by_the_next_one() {
    let found = images(&[
        write(0, b"old"),
        Entry::Sync(PATH.into()),
        write(0, b"new"),
        Entry::FailedSync(PATH.into()),
        Entry::Sync(PATH.into()),
    ]);
    // The failed sync settled it, one way or the other; no later power loss makes a difference.
    assert_eq!(found.len(), 1);
}

#[test]
fn a_removal_is_durable_once_its_directory_was_synced() {
    let written = [write(0, b"kept"), Entry::Sync(PATH.into()), Entry::Unlink(PATH.into())];
    assert_eq!(images(&written), BTreeSet::from([None, Some(b"kept".to_vec())]));
    let synced = [written.as_slice(), &[Entry::Sync(PathBuf::new())]].concat();
    assert_eq!(images(&synced), BTreeSet::from([None]));
}

#[test]
fn a_journal_that_ends_in_the_middle_of_an_entry_is_read_up_to_there() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal");
    let path = b"/store/data";
    let mut bytes = vec![b'S'];
    bytes.extend((path.len() as u32).to_ne_bytes());
    bytes.extend([0; 16]);
    bytes.extend(path);
    let whole = bytes.len();
    bytes.extend_from_within(..whole - 1);
    fs::write(&journal, bytes).unwrap();
    let entries = read_journal(&journal, Path::new("/store")).unwrap();
    assert!(matches!(&entries[..], [Entry::Sync(path)] if path == Path::new(PATH)));
}
