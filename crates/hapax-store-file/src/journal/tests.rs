//! What a journal gives back after it was cut, changed or written over.

use std::time::Duration;

use hapax_core::{Class, Fence, Fingerprint, Format, Key, Nonce, Recorded, Scope, ScopedKey, Status};

use super::*;

const GENERATION: Generation = Generation { number: 7, salt: -3 };
const NEXT: Generation = Generation { number: 8, salt: 40 };

fn journal(dir: &Path) -> Journal {
    let path = dir.join("journal");
    let file = File::options().create_new(true).read(true).write(true).open(&path).unwrap();
    Journal::new(path, file, Sync::Full, GENERATION)
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

/// Where the next batch goes.
fn end(journal: &Journal) -> usize {
    (FRAMES_AT + journal.length()) as usize
}

/// What lies in the file, without what vouches for the last batch: as if that had never been acknowledged.
fn unvouched(dir: &Path, journal: &Journal) -> Vec<u8> {
    let mut bytes = fs::read(dir.join("journal")).unwrap();
    assert_eq!(bytes.len(), end(journal) + HEADER_LENGTH);
    bytes.truncate(end(journal));
    bytes
}

/// Brings one batch of finished records to the disk, decided at `now`.
fn bring(journal: &mut Journal, now: u64, names: &[&str], length: usize) {
    journal.begin(Timestamp::from_millis(now));
    for name in names {
        let record = record(name, length);
        journal.put(&record.key.id, &codec::encode(&record)).unwrap();
    }
    journal.bring().unwrap();
}

fn id_of(name: &str) -> RecordId {
    record(name, 0).key.id
}

/// The ids that the journal in `dir` holds of `generation`, and whether its end makes sense.
fn read(dir: &Path, generation: Generation) -> (Vec<RecordId>, Result<(), ReadError>) {
    let file = Arc::new(File::open(dir.join("journal")).unwrap());
    let mut frames = Frames::of(file, generation, None).unwrap();
    let mut ids = Vec::new();
    while let Some(frame) = frames.next().unwrap() {
        ids.extend(frame.entries.iter().map(|entry| match entry {
            Entry::Put(record) => record.key.id,
            Entry::Remove(id) => *id,
        }));
    }
    (ids, frames.check_end())
}

#[test]
fn gives_back_what_was_brought_to_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = journal(dir.path());
    assert_eq!(journal.length(), 0);
    bring(&mut journal, 5, &["a", "b"], 10);
    journal.begin(Timestamp::from_millis(6));
    journal.remove(&id_of("a")).unwrap();
    journal.bring().unwrap();
    let mut frames = journal.frames().unwrap();
    let first = frames.next().unwrap().unwrap();
    assert_eq!((first.now.as_millis(), first.entries.len()), (5, 2));
    assert!(matches!(&first.entries[1], Entry::Put(record) if record.recorded().unwrap().len() == 10));
    let second = frames.next().unwrap().unwrap();
    assert_eq!(second.now.as_millis(), 6);
    assert!(matches!(second.entries[..], [Entry::Remove(id)] if id == id_of("a")));
    assert!(frames.next().unwrap().is_none());
    assert_eq!(frames.read_length(), journal.length());
    assert_eq!(generation_at(&dir.path().join("journal")).unwrap(), Some(GENERATION.number));
}

#[test]
fn a_journal_that_is_empty_or_not_there_holds_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    assert_eq!(generation_at(&path).unwrap(), None);
    let journal = journal(dir.path());
    let (ids, end) = read(dir.path(), GENERATION);
    assert!(ids.is_empty() && end.is_ok());
    assert_eq!(generation_at(&path).unwrap(), None);
    journal.end().unwrap();
    assert!(!path.exists());
}

#[test]
fn one_generation_is_written_over_the_last() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = journal(dir.path());
    bring(&mut journal, 1, &["a"], 10);
    bring(&mut journal, 2, &["b"], 10);
    journal.start_over(NEXT);
    bring(&mut journal, 3, &["c"], 10);
    // As long as what it lies on: the second frame of the last generation comes right after it.
    assert_eq!(read(dir.path(), NEXT).0, [id_of("c")]);
    assert!(read(dir.path(), GENERATION).0.is_empty());
    // Known by both, so that nobody outside can make a frame.
    assert!(read(dir.path(), Generation { salt: 41, ..NEXT }).0.is_empty());
    assert!(read(dir.path(), Generation { number: 9, ..NEXT }).0.is_empty());
}

#[test]
fn a_torn_batch_costs_itself_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = journal(dir.path());
    bring(&mut journal, 1, &["a"], 10);
    let whole = end(&journal);
    bring(&mut journal, 2, &["b", "c"], 300);
    let bytes = unvouched(dir.path(), &journal);
    for cut in whole..bytes.len() {
        // What a crash leaves is cut, or goes on with what lay there before.
        for filler in [0, bytes.len() - cut] {
            let torn = [&bytes[..cut], &vec![0xA5; filler]].concat();
            fs::write(dir.path().join("journal"), torn).unwrap();
            let (ids, end) = read(dir.path(), GENERATION);
            assert_eq!(ids, [id_of("a")], "cut at {cut}");
            assert!(end.is_ok(), "cut at {cut}: {end:?}");
        }
    }
}

#[test]
fn damage_before_something_whole_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = journal(dir.path());
    bring(&mut journal, 1, &["a"], 10);
    let first = end(&journal);
    bring(&mut journal, 2, &["b"], 10);
    let second = end(&journal);
    bring(&mut journal, 3, &["c"], 10);
    let third = end(&journal);
    let bytes = fs::read(dir.path().join("journal")).unwrap();
    let beginning = FRAMES_AT as usize;
    // Also in the last batch: it was acknowledged.
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
        fs::write(dir.path().join("journal"), damaged).unwrap();
        let (ids, end) = read(dir.path(), GENERATION);
        assert_eq!(ids.len(), read_before, "byte {at}");
        assert!(matches!(end, Err(ReadError::Damaged(_))), "byte {at}: {end:?}");
    }
}

/// A batch of several frames: each has more than one of them holds.
fn bring_long(journal: &mut Journal, names: &[&str]) {
    bring(journal, 1, names, FRAME_BYTES);
}

#[test]
fn a_long_batch_is_written_in_parts_of_which_any_may_be_torn() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = journal(dir.path());
    bring_long(&mut journal, &["a", "b", "c"]);
    let bytes = unvouched(dir.path(), &journal);
    assert_eq!(read(dir.path(), GENERATION).0.len(), 3);
    // The disk had the last part, and not the one before: nobody was told of any.
    let mut torn = bytes.clone();
    torn[FRAME_BYTES + FRAME_BYTES / 2] ^= 1;
    fs::write(dir.path().join("journal"), torn).unwrap();
    let (ids, end) = read(dir.path(), GENERATION);
    assert_eq!(ids, [id_of("a")]);
    assert!(end.is_ok(), "{end:?}");
}

#[test]
fn what_is_taken_back_is_not_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = journal(dir.path());
    bring(&mut journal, 1, &["a"], 10);
    journal.begin(Timestamp::from_millis(2));
    for name in ["b", "c"] {
        let record = record(name, FRAME_BYTES);
        journal.put(&record.key.id, &codec::encode(&record)).unwrap();
    }
    journal.forget().unwrap();
    let (ids, end) = read(dir.path(), GENERATION);
    assert_eq!(ids, [id_of("a")]);
    assert!(end.is_ok(), "{end:?}");
    // What was acknowledged before it is vouched for again.
    let mut bytes = fs::read(dir.path().join("journal")).unwrap();
    bytes[FRAMES_AT as usize + 60] ^= 1;
    fs::write(dir.path().join("damaged"), bytes).unwrap();
    let damaged = Arc::new(File::open(dir.path().join("damaged")).unwrap());
    let mut frames = Frames::of(damaged, GENERATION, None).unwrap();
    assert!(frames.next().unwrap().is_none());
    assert!(matches!(frames.check_end(), Err(ReadError::Damaged(_))));
    // As long as the first part of what was taken back: the second would come right after it.
    bring_long(&mut journal, &["d"]);
    let (ids, end) = read(dir.path(), GENERATION);
    assert_eq!(ids, [id_of("a"), id_of("d")]);
    assert!(end.is_ok(), "{end:?}");
}

#[test]
fn an_entry_that_makes_no_sense_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = journal(dir.path());
    journal.begin(Timestamp::from_millis(1));
    // Whole as a frame, and not a record.
    let nonsense = Encoded { head: vec![0; 8], outcome: None };
    journal.put(&id_of("a"), &nonsense).unwrap();
    journal.bring().unwrap();
    assert!(matches!(journal.frames().unwrap().next(), Err(ReadError::Damaged(_))));
}

#[test]
fn damage_in_a_part_is_noticed_by_the_batch_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = journal(dir.path());
    bring_long(&mut journal, &["a", "b", "c"]);
    bring(&mut journal, 2, &["d"], 10);
    let mut bytes = fs::read(dir.path().join("journal")).unwrap();
    // In the second part, and in the third: what comes after the damage is of the same batch, or of the next.
    for at in [FRAME_BYTES + FRAME_BYTES / 2, 2 * FRAME_BYTES + FRAME_BYTES / 2] {
        bytes[at] ^= 1;
        fs::write(dir.path().join("journal"), &bytes).unwrap();
        bytes[at] ^= 1;
        assert!(matches!(read(dir.path(), GENERATION).1, Err(ReadError::Damaged(_))), "byte {at}");
    }
}

#[test]
fn a_beginning_that_is_not_whole_is_of_no_generation() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = journal(dir.path());
    bring(&mut journal, 1, &["a"], 10);
    let path = dir.path().join("journal");
    let bytes = unvouched(dir.path(), &journal);
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    assert_eq!(generation_at(&path).unwrap(), None);
}

#[test]
fn a_mark_is_ahead_of_what_may_be_committed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let mut journal = journal(dir.path());
    assert_eq!(newest_mark_at(&path).unwrap(), None);
    journal.mark_beginning().unwrap();
    assert_eq!(newest_mark_at(&path).unwrap(), Some(GENERATION.number));
    bring(&mut journal, 1, &["a"], 10);
    assert_eq!(newest_mark_at(&path).unwrap(), Some(GENERATION.number + 1));
    journal.start_over(NEXT);
    assert_eq!(newest_mark_at(&path).unwrap(), Some(NEXT.number));
    journal.mark_ahead().unwrap();
    assert_eq!(newest_mark_at(&path).unwrap(), Some(NEXT.number + 1));
    // A beginning does not take back what is further on.
    journal.mark_beginning().unwrap();
    assert_eq!(newest_mark_at(&path).unwrap(), Some(NEXT.number + 1));
}

#[test]
fn one_of_two_marks_is_enough_and_none_is_no_mark() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let mut journal = journal(dir.path());
    journal.mark_beginning().unwrap();
    journal.mark_ahead().unwrap();
    let (older, newer) = (GENERATION.number % 2 * MARK_ROOM, NEXT.number % 2 * MARK_ROOM);
    let damage = |at: u64| {
        let mut bytes = fs::read(&path).unwrap();
        bytes[at as usize + 9] ^= 1;
        fs::write(&path, bytes).unwrap();
    };
    damage(newer);
    assert_eq!(newest_mark_at(&path).unwrap(), Some(GENERATION.number));
    damage(older);
    assert_eq!(newest_mark_at(&path).unwrap(), None);
    fs::write(&path, vec![0; 4096]).unwrap();
    assert_eq!(newest_mark_at(&path).unwrap(), None);
}

#[test]
fn a_journal_that_was_very_long_gives_its_room_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = journal(dir.path());
    bring(&mut journal, 1, &["a"], usize::try_from(LENGTH_KEPT).unwrap());
    assert!(journal.is_long());
    journal.start_over(NEXT);
    assert_eq!(fs::metadata(dir.path().join("journal")).unwrap().len(), LENGTH_KEPT);
    bring(&mut journal, 2, &["b"], 10);
    assert_eq!(read(dir.path(), NEXT).0, [id_of("b")]);
}

#[test]
fn d_04_a_journal_that_cannot_be_written_stops_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    fs::write(&path, "").unwrap();
    let mut journal = Journal::new(path.clone(), File::open(path).unwrap(), Sync::Full, GENERATION);
    journal.begin(Timestamp::from_millis(1));
    journal.remove(&id_of("a")).unwrap();
    let judgement = journal.bring().unwrap_err().judge();
    assert_eq!((judgement.kind, judgement.fatal), (hapax_core::StoreErrorKind::Unknown, true));
}
