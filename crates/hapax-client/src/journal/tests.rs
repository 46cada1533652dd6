use tempfile::TempDir;

use super::stored::tests::stored;
use super::*;

fn open() -> (TempDir, Journal) {
    let directory = TempDir::new().unwrap();
    let journal = Journal::open(directory.path().to_owned(), IfMissing::Create).unwrap();
    (directory, journal)
}

/// Appends a call that is not synced, and returns the number of its frame.
fn append(journal: &Journal, key: &str) -> u64 {
    let mut state = journal.shared.state.lock();
    let (id, stored) = (state.next_id, stored(key, b"book"));
    state.append(&Event::Opened { id, call: stored.head() }, stored.body()).unwrap();
    state.next_id += 1;
    state.calls.insert(id, LiveCall { stored, is_uncertain: false, running: 1 });
    state.appended
}

#[tokio::test]
async fn a_call_that_waited_behind_a_failed_sync_is_not_acknowledged() {
    let (directory, journal) = open();
    append(&journal, "a");
    let sync = journal.shared.state.lock().log.sync().unwrap();
    let second = append(&journal, "b");
    journal.shared.state.lock().log.synced(&sync, Err(JournalError::Stopped)).unwrap_err();
    assert!(matches!(journal.sync_through(second).await, Err(JournalError::Stopped)));

    drop(journal);
    let journal = Journal::open(directory.path().to_owned(), IfMissing::Refuse).unwrap();
    assert!(journal.open_calls().is_empty());
}
