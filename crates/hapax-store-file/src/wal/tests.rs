//! Reading a write-ahead log that is complete, torn, damaged or overwritten.

use std::time::Duration;

use hapax_core::{Class, Fence, Fingerprint, Format, Key, Nonce, Recorded, Scope, ScopedKey, Status};

use super::*;

const GENERATION: Generation = Generation { number: 7, salt: -3 };
const NEXT: Generation = Generation { number: 8, salt: 40 };

fn new_wal(dir: &Path) -> Wal {
    let path = dir.join("wal");
    let file = File::options().create_new(true).read(true).write(true).open(&path).unwrap();
    Wal::new(path, file, SyncMode::Full, GENERATION)
}

/// A finished record with an outcome of `length` bytes.
fn record(name: &str, length: usize) -> Record {
    let at = Timestamp::from_millis(1_000);
    Record {
        key: ScopedKey::new(Scope::new("POST /orders"), &Key::new(name).unwrap()),
        fingerprint: Fingerprint::empty(),
        fence: Fence { nonce: Nonce::from_bytes([1; 16]), attempt: 1 },
        takeovers: 0,
        created_at: at,
        updated_at: at,
        expires_at: at.after(Duration::from_secs(60)),
        status: Status::Pinned {
            recorded: Recorded::new(Class::Success, Format::FUNCTION, "x".repeat(length)),
        },
    }
}

/// The offset of the next batch.
fn end(wal: &Wal) -> usize {
    (FRAMES_AT + wal.length()) as usize
}

/// The bytes of the file without the last trailer: as if the last batch had never been acknowledged.
fn without_trailer(dir: &Path, wal: &Wal) -> Vec<u8> {
    let mut bytes = fs::read(dir.join("wal")).unwrap();
    assert_eq!(bytes.len(), end(wal) + FRAME_HEADER_LENGTH);
    bytes.truncate(end(wal));
    bytes
}

/// Logs and syncs one batch of completed records, decided at `now`.
fn log(wal: &mut Wal, now: u64, names: &[&str], length: usize) {
    wal.begin(Timestamp::from_millis(now));
    for name in names {
        let record = record(name, length);
        wal.put(&record.key.id, &codec::encode(&record)).unwrap();
    }
    wal.sync().unwrap();
}

fn id_of(name: &str) -> RecordId {
    record(name, 0).key.id
}

/// The ids that the log in `dir` has of `generation`, and whether its end is valid.
fn read(dir: &Path, generation: Generation) -> (Vec<RecordId>, Result<(), WalReadError>) {
    let file = Arc::new(File::open(dir.join("wal")).unwrap());
    let mut frames = FrameReader::of(file, generation, None).unwrap();
    let mut ids = Vec::new();
    while let Some(frame) = frames.next().unwrap() {
        ids.extend(frame.entries.iter().map(|entry| match entry {
            WalEntry::Put(record) => record.key.id,
            WalEntry::Remove(id) => *id,
        }));
    }
    (ids, frames.check_end())
}

#[test]
fn reads_the_synced_batches() {
    let dir = tempfile::tempdir().unwrap();
    let mut wal = new_wal(dir.path());
    assert_eq!(wal.length(), 0);
    log(&mut wal, 5, &["a", "b"], 10);
    wal.begin(Timestamp::from_millis(6));
    wal.remove(&id_of("a")).unwrap();
    wal.sync().unwrap();
    let mut frames = wal.frames().unwrap();
    let first = frames.next().unwrap().unwrap();
    assert_eq!((first.now.as_millis(), first.entries.len()), (5, 2));
    assert!(matches!(&first.entries[1], WalEntry::Put(record) if record.recorded().unwrap().len() == 10));
    let second = frames.next().unwrap().unwrap();
    assert_eq!(second.now.as_millis(), 6);
    assert!(matches!(second.entries[..], [WalEntry::Remove(id)] if id == id_of("a")));
    assert!(frames.next().unwrap().is_none());
    assert_eq!(frames.read_length(), wal.length());
    assert_eq!(frame_generation_at(&dir.path().join("wal")).unwrap(), Some(GENERATION.number));
}

#[test]
fn an_empty_or_missing_log_has_no_frames() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("wal");
    assert_eq!(frame_generation_at(&path).unwrap(), None);
    let wal = new_wal(dir.path());
    let (ids, end) = read(dir.path(), GENERATION);
    assert!(ids.is_empty() && end.is_ok());
    assert_eq!(frame_generation_at(&path).unwrap(), None);
    wal.remove_file().unwrap();
    assert!(!path.exists());
}

#[test]
fn a_generation_overwrites_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let mut wal = new_wal(dir.path());
    log(&mut wal, 1, &["a"], 10);
    log(&mut wal, 2, &["b"], 10);
    wal.begin_generation(NEXT);
    log(&mut wal, 3, &["c"], 10);
    // As long as the frame that it overwrites: the second frame of the last generation follows it.
    assert_eq!(read(dir.path(), NEXT).0, [id_of("c")]);
    assert!(read(dir.path(), GENERATION).0.is_empty());
    // A frame needs both, number and salt.
    assert!(read(dir.path(), Generation { salt: 41, ..NEXT }).0.is_empty());
    assert!(read(dir.path(), Generation { number: 9, ..NEXT }).0.is_empty());
}

#[test]
fn a_torn_batch_loses_only_itself() {
    let dir = tempfile::tempdir().unwrap();
    let mut wal = new_wal(dir.path());
    log(&mut wal, 1, &["a"], 10);
    let whole = end(&wal);
    log(&mut wal, 2, &["b", "c"], 300);
    let bytes = without_trailer(dir.path(), &wal);
    for cut in whole..bytes.len() {
        // After a crash the file is cut, or continues with older bytes.
        for filler in [0, bytes.len() - cut] {
            let torn = [&bytes[..cut], &vec![0xA5; filler]].concat();
            fs::write(dir.path().join("wal"), torn).unwrap();
            let (ids, end) = read(dir.path(), GENERATION);
            assert_eq!(ids, [id_of("a")], "cut at {cut}");
            assert!(end.is_ok(), "cut at {cut}: {end:?}");
        }
    }
}

#[test]
fn damage_before_a_valid_frame_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let mut wal = new_wal(dir.path());
    log(&mut wal, 1, &["a"], 10);
    let first = end(&wal);
    log(&mut wal, 2, &["b"], 10);
    let second = end(&wal);
    log(&mut wal, 3, &["c"], 10);
    let third = end(&wal);
    let bytes = fs::read(dir.path().join("wal")).unwrap();
    let beginning = FRAMES_AT as usize;
    // Also in the last batch, which was acknowledged.
    let places = [
        (beginning, 0),
        (first - 1, 0),
        (first, 1),
        (first + 60, 1),
        (second - 1, 1),
        (second, 2),
        (third - 1, 2),
    ];
    for (at, read_before) in places {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        fs::write(dir.path().join("wal"), damaged).unwrap();
        let (ids, end) = read(dir.path(), GENERATION);
        assert_eq!(ids.len(), read_before, "byte {at}");
        assert!(matches!(end, Err(WalReadError::Damaged(_))), "byte {at}: {end:?}");
    }
}

/// Logs a batch of several frames.
fn log_long(wal: &mut Wal, names: &[&str]) {
    log(wal, 1, names, FRAME_BYTES);
}

#[test]
fn any_part_of_a_long_batch_may_be_torn() {
    let dir = tempfile::tempdir().unwrap();
    let mut wal = new_wal(dir.path());
    log_long(&mut wal, &["a", "b", "c"]);
    let bytes = without_trailer(dir.path(), &wal);
    assert_eq!(read(dir.path(), GENERATION).0.len(), 3);
    // The disk has the last part, but not the one before; the batch was not acknowledged.
    let mut torn = bytes.clone();
    torn[FRAME_BYTES + FRAME_BYTES / 2] ^= 1;
    fs::write(dir.path().join("wal"), torn).unwrap();
    let (ids, end) = read(dir.path(), GENERATION);
    assert_eq!(ids, [id_of("a")]);
    assert!(end.is_ok(), "{end:?}");
}

#[test]
fn a_discarded_batch_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut wal = new_wal(dir.path());
    log(&mut wal, 1, &["a"], 10);
    wal.begin(Timestamp::from_millis(2));
    for name in ["b", "c"] {
        let record = record(name, FRAME_BYTES);
        wal.put(&record.key.id, &codec::encode(&record)).unwrap();
    }
    wal.discard_batch().unwrap();
    let (ids, end) = read(dir.path(), GENERATION);
    assert_eq!(ids, [id_of("a")]);
    assert!(end.is_ok(), "{end:?}");
    // The batch before it has a trailer again.
    let mut bytes = fs::read(dir.path().join("wal")).unwrap();
    bytes[FRAMES_AT as usize + 60] ^= 1;
    fs::write(dir.path().join("damaged"), bytes).unwrap();
    let damaged = Arc::new(File::open(dir.path().join("damaged")).unwrap());
    let mut frames = FrameReader::of(damaged, GENERATION, None).unwrap();
    assert!(frames.next().unwrap().is_none());
    assert!(matches!(frames.check_end(), Err(WalReadError::Damaged(_))));
    // As long as the first part of the discarded batch, whose second part would follow it.
    log_long(&mut wal, &["d"]);
    let (ids, end) = read(dir.path(), GENERATION);
    assert_eq!(ids, [id_of("a"), id_of("d")]);
    assert!(end.is_ok(), "{end:?}");
}

#[test]
fn an_invalid_entry_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    let mut wal = new_wal(dir.path());
    wal.begin(Timestamp::from_millis(1));
    // A valid frame with an invalid record.
    let nonsense = Encoded { head: vec![0; 8], outcome: None };
    wal.put(&id_of("a"), &nonsense).unwrap();
    wal.sync().unwrap();
    assert!(matches!(wal.frames().unwrap().next(), Err(WalReadError::Damaged(_))));
}

#[test]
fn damage_in_a_part_is_detected_by_the_next_batch() {
    let dir = tempfile::tempdir().unwrap();
    let mut wal = new_wal(dir.path());
    log_long(&mut wal, &["a", "b", "c"]);
    log(&mut wal, 2, &["d"], 10);
    let mut bytes = fs::read(dir.path().join("wal")).unwrap();
    // In the second part and in the third: the frame after the damage is of the same batch, or of the next.
    for at in [FRAME_BYTES + FRAME_BYTES / 2, 2 * FRAME_BYTES + FRAME_BYTES / 2] {
        bytes[at] ^= 1;
        fs::write(dir.path().join("wal"), &bytes).unwrap();
        bytes[at] ^= 1;
        assert!(matches!(read(dir.path(), GENERATION).1, Err(WalReadError::Damaged(_))), "byte {at}");
    }
}

#[test]
fn an_invalid_first_frame_has_no_generation() {
    let dir = tempfile::tempdir().unwrap();
    let mut wal = new_wal(dir.path());
    log(&mut wal, 1, &["a"], 10);
    let path = dir.path().join("wal");
    let bytes = without_trailer(dir.path(), &wal);
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    assert_eq!(frame_generation_at(&path).unwrap(), None);
}

#[test]
fn the_header_is_ahead_of_the_generation_that_may_be_committed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("wal");
    let mut wal = new_wal(dir.path());
    assert_eq!(header_generation_at(&path).unwrap(), None);
    wal.ensure_header().unwrap();
    assert_eq!(header_generation_at(&path).unwrap(), Some(GENERATION.number));
    log(&mut wal, 1, &["a"], 10);
    assert_eq!(header_generation_at(&path).unwrap(), Some(GENERATION.number + 1));
    wal.begin_generation(NEXT);
    assert_eq!(header_generation_at(&path).unwrap(), Some(NEXT.number));
    wal.advance_header().unwrap();
    assert_eq!(header_generation_at(&path).unwrap(), Some(NEXT.number + 1));
    // A start does not write an older generation.
    wal.ensure_header().unwrap();
    assert_eq!(header_generation_at(&path).unwrap(), Some(NEXT.number + 1));
}

#[test]
fn one_of_the_two_headers_is_enough() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("wal");
    let mut wal = new_wal(dir.path());
    wal.ensure_header().unwrap();
    wal.advance_header().unwrap();
    let (older, newer) =
        (GENERATION.number % 2 * GENERATION_HEADER_ROOM, NEXT.number % 2 * GENERATION_HEADER_ROOM);
    let damage = |at: u64| {
        let mut bytes = fs::read(&path).unwrap();
        bytes[at as usize + 9] ^= 1;
        fs::write(&path, bytes).unwrap();
    };
    damage(newer);
    assert_eq!(header_generation_at(&path).unwrap(), Some(GENERATION.number));
    damage(older);
    assert_eq!(header_generation_at(&path).unwrap(), None);
    fs::write(&path, vec![0; 4096]).unwrap();
    assert_eq!(header_generation_at(&path).unwrap(), None);
}

#[test]
fn a_very_long_log_is_cut() {
    let dir = tempfile::tempdir().unwrap();
    let mut wal = new_wal(dir.path());
    log(&mut wal, 1, &["a"], usize::try_from(LENGTH_KEPT).unwrap());
    assert!(wal.is_long());
    wal.begin_generation(NEXT);
    assert_eq!(fs::metadata(dir.path().join("wal")).unwrap().len(), LENGTH_KEPT);
    log(&mut wal, 2, &["b"], 10);
    assert_eq!(read(dir.path(), NEXT).0, [id_of("b")]);
}

#[test]
fn d_04_a_failed_write_of_the_log_stops_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("wal");
    fs::write(&path, "").unwrap();
    let mut wal = Wal::new(path.clone(), File::open(path).unwrap(), SyncMode::Full, GENERATION);
    wal.begin(Timestamp::from_millis(1));
    wal.remove(&id_of("a")).unwrap();
    let class = wal.sync().unwrap_err().classify();
    assert_eq!((class.kind, class.fatal), (hapax_core::StoreErrorKind::Unknown, true));
}
