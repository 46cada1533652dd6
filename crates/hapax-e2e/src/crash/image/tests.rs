use super::*;

const PATH: &str = "data";

fn write(offset: u64, data: &[u8]) -> DiskEvent {
    DiskEvent::Write { path: PATH.into(), offset, data: data.to_vec() }
}

/// The different images of the file after a few hundred power losses.
fn images(events: &[DiskEvent]) -> BTreeSet<Option<Vec<u8>>> {
    let mut disk = Disk { dirs: BTreeSet::from([PathBuf::new()]), ..Disk::default() };
    let mut random = Random::seeded(1);
    events.iter().for_each(|event| disk.apply(event, &mut random));
    (0..300)
        .map(|_| {
            let dir = tempfile::tempdir().unwrap();
            disk.lose_power(dir.path(), &mut random).unwrap();
            fs::read(dir.path().join(PATH)).ok()
        })
        .collect()
}

#[test]
fn synced_data_always_survives() {
    let found = images(&[write(0, b"kept"), DiskEvent::Sync(PATH.into())]);
    assert_eq!(found, BTreeSet::from([Some(b"kept".to_vec())]));
}

#[test]
fn unsynced_data_may_survive_or_not() {
    let found = images(&[write(0, b"old"), DiskEvent::Sync(PATH.into()), write(0, b"new")]);
    assert_eq!(found, BTreeSet::from([Some(b"old".to_vec()), Some(b"new".to_vec())]));
}

#[test]
fn sectors_of_an_unsynced_write_survive_independently() {
    let old = [b'o'; 1024];
    let found = images(&[write(0, &old), DiskEvent::Sync(PATH.into()), write(0, &[b'n'; 1024])]);
    let image = |first, second| Some([[first; 512], [second; 512]].concat());
    let all = [(b'o', b'o'), (b'o', b'n'), (b'n', b'o'), (b'n', b'n')];
    assert_eq!(found, all.map(|(first, second)| image(first, second)).into());
}

#[test]
fn the_next_sync_does_not_repair_a_failed_one() {
    let found = images(&[
        write(0, b"old"),
        DiskEvent::Sync(PATH.into()),
        write(0, b"new"),
        DiskEvent::FailedSync(PATH.into()),
        DiskEvent::Sync(PATH.into()),
    ]);
    // The failed sync decided it; later power losses make no difference.
    assert_eq!(found.len(), 1);
}

#[test]
fn a_removal_is_durable_after_a_sync_of_its_directory() {
    let written = [write(0, b"kept"), DiskEvent::Sync(PATH.into()), DiskEvent::Unlink(PATH.into())];
    assert_eq!(images(&written), BTreeSet::from([None, Some(b"kept".to_vec())]));
    let synced = [written.as_slice(), &[DiskEvent::Sync(PathBuf::new())]].concat();
    assert_eq!(images(&synced), BTreeSet::from([None]));
}

#[test]
fn an_incomplete_last_entry_of_a_trace_is_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace");
    let path = b"/store/data";
    let mut bytes = vec![b'S'];
    bytes.extend((path.len() as u32).to_ne_bytes());
    bytes.extend([0; 16]);
    bytes.extend(path);
    let whole = bytes.len();
    bytes.extend_from_within(..whole - 1);
    fs::write(&trace, bytes).unwrap();
    let events = read_trace(&trace, Path::new("/store")).unwrap();
    assert!(matches!(&events[..], [DiskEvent::Sync(path)] if path == Path::new(PATH)));
}
