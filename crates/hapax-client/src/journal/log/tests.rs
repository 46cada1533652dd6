use tempfile::TempDir;

use super::*;
use crate::journal::stored::tests::stored;

fn open() -> (TempDir, Log) {
    let directory = TempDir::new().unwrap();
    let (log, calls) = Log::open(directory.path().to_owned(), IfMissing::Create).unwrap();
    assert!(calls.is_empty());
    (directory, log)
}

fn append(log: &mut Log) -> Result<u64, JournalError> {
    let call = stored("a", b"book");
    log.append(&Event::Opened { id: 1, call: call.head() }, call.body())
}

#[test]
fn a_log_that_cannot_be_written_takes_no_more() {
    let (directory, mut log) = open();
    log.file = Arc::new(File::open(directory.path().join(LOG)).unwrap());
    assert!(matches!(append(&mut log), Err(JournalError::Io { operation: "write", .. })));
    assert!(matches!(append(&mut log), Err(JournalError::Stopped)));
}

#[test]
fn a_failed_sync_removes_what_was_not_synced_and_stops_the_log() {
    let (directory, mut log) = open();
    append(&mut log).unwrap();
    let sync = log.sync().unwrap();
    let result = sync.run();
    log.synced(&sync, result).unwrap();
    let size = log.size();

    append(&mut log).unwrap();
    let sync = log.sync().unwrap();
    log.synced(&sync, Err(JournalError::Stopped)).unwrap_err();
    assert_eq!(fs::metadata(directory.path().join(LOG)).unwrap().len(), size);
    assert_eq!(log.size(), size);
    assert!(matches!(log.sync(), Err(JournalError::Stopped)));
    assert!(matches!(log.synced(&sync, Ok(())), Err(JournalError::Stopped)));
    assert!(matches!(append(&mut log), Err(JournalError::Stopped)));
}

#[test]
fn a_sync_from_before_a_rewrite_says_nothing_about_the_new_file() {
    let (_directory, mut log) = open();
    append(&mut log).unwrap();
    let sync = log.sync().unwrap();
    log.rewrite(std::iter::empty()).unwrap();
    log.synced(&sync, Ok(())).unwrap();
    assert_eq!(log.synced_size, head::LENGTH as u64);
    log.synced(&sync, Err(JournalError::Stopped)).unwrap();
    append(&mut log).unwrap();
}

#[test]
fn a_rewritten_log_whose_name_may_be_lost_takes_no_more() {
    let (directory, mut log) = open();
    append(&mut log).unwrap();
    let mut new = write_new(directory.path(), std::iter::empty()).unwrap();
    new.named = Err(JournalError::Stopped);
    log.replace(new).unwrap_err();
    assert_eq!(log.size(), fs::metadata(directory.path().join(LOG)).unwrap().len());
    assert!(matches!(append(&mut log), Err(JournalError::Stopped)));
    assert!(matches!(log.sync(), Err(JournalError::Stopped)));
    assert!(matches!(log.rewrite(std::iter::empty()), Err(JournalError::Stopped)));
}

#[test]
fn appends_after_a_rewrite_are_in_the_new_file() {
    let (directory, mut log) = open();
    fs::write(directory.path().join(NEW_LOG), "left behind by a process that was killed").unwrap();
    log.rewrite(std::iter::empty()).unwrap();
    append(&mut log).unwrap();
    assert_eq!(log.size(), fs::metadata(directory.path().join(LOG)).unwrap().len());
    drop(log);
    let (_log, calls) = Log::open(directory.path().to_owned(), IfMissing::Refuse).unwrap();
    assert_eq!(calls.len(), 1);
}

#[test]
fn the_head_says_what_was_synced() {
    let (directory, mut log) = open();
    let path = directory.path().join(LOG);
    let noted = || Head::read(&fs::read(&path).unwrap(), &path).unwrap().unwrap().synced;
    append(&mut log).unwrap();
    assert_eq!(noted(), head::LENGTH as u64);
    let sync = log.sync().unwrap();
    append(&mut log).unwrap();
    sync.run().unwrap();
    assert!(noted() > head::LENGTH as u64 && noted() < log.size());

    let calls = [stored("a", b"book"), stored("b", b"book")];
    log.rewrite(calls.iter().map(|call| (1, call, false))).unwrap();
    assert_eq!(noted(), log.size());
    append(&mut log).unwrap();
    let size = log.size();
    drop(log);
    // A process that reads the file syncs all of it.
    drop(Log::open(directory.path().to_owned(), IfMissing::Refuse).unwrap());
    assert_eq!(noted(), size);
}

#[test]
fn damage_of_a_call_that_was_synced_is_no_torn_write() {
    let (directory, mut log) = open();
    append(&mut log).unwrap();
    log.sync().unwrap().run().unwrap();
    drop(log);
    let path = directory.path().join(LOG);
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, &bytes).unwrap();
    let opened = Log::open(directory.path().to_owned(), IfMissing::Refuse);
    assert!(matches!(opened, Err(JournalError::Damaged { at, .. }) if at == head::LENGTH as u64));
    assert_eq!(fs::read(&path).unwrap(), bytes);

    bytes.truncate(bytes.len() - 1);
    fs::write(&path, &bytes).unwrap();
    let opened = Log::open(directory.path().to_owned(), IfMissing::Refuse);
    assert!(matches!(opened, Err(JournalError::Damaged { at, .. }) if at == bytes.len() as u64));
}
