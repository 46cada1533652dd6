use std::fs;

use tempfile::TempDir;

use super::entry::End;
use super::state::REWRITE_MIN;
use super::stored::tests::{plan, stored};
use super::*;

fn open() -> (TempDir, Journal) {
    let directory = TempDir::new().unwrap();
    let journal = Journal::open(directory.path().to_owned(), IfMissing::Create).unwrap();
    (directory, journal)
}

/// Appends a call that is not synced, and returns the number of its frame.
fn append(journal: &Journal, key: &str) -> u64 {
    append_stored(journal, stored(key, b"book"))
}

fn append_stored(journal: &Journal, stored: StoredCall) -> u64 {
    let mut state = journal.shared.state.lock();
    let id = state.next_id;
    let size = state.append(&Event::Opened { id, call: stored.head() }, stored.body()).unwrap();
    state.next_id += 1;
    let frame = state.appended;
    let age = KeyAge::new(stored.key_made_at(), Moment::now());
    state.live_size += size;
    state.calls.insert(id, LiveCall { stored, age, is_uncertain: false, size, frame, running: 1 });
    frame
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

#[tokio::test]
async fn a_call_that_another_has_begun_waits_until_it_is_on_disk() {
    let (_directory, journal) = open();
    let turn = journal.shared.syncing.lock().await;
    let first = tokio::spawn({
        let journal = journal.clone();
        async move { journal.begin(&mut plan("a", b"book")).await.map(drop) }
    });
    while journal.open_calls().is_empty() {
        tokio::task::yield_now().await;
    }
    let mut second = plan("a", b"book");
    let mut second = std::pin::pin!(journal.begin(&mut second));
    let early = tokio::time::timeout(Duration::from_millis(100), second.as_mut()).await;
    assert!(early.is_err() && !first.is_finished());

    drop(turn);
    second.await.map(drop).unwrap();
    first.await.unwrap().unwrap();
    assert_eq!(journal.shared.state.lock().synced, 1);
}

#[tokio::test]
async fn a_call_whose_caller_left_before_its_sync_is_synced_when_it_is_resumed() {
    let (_directory, journal) = open();
    append(&journal, "a");
    journal.shared.state.lock().calls.values_mut().for_each(|call| call.running = 0);
    let call = journal.open_calls().remove(0);
    journal.continue_call(&call).await.unwrap().map(drop).unwrap();
    assert_eq!(journal.shared.state.lock().synced, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_01_of_two_bodies_with_one_key_one_is_begun() {
    let (_directory, journal) = open();
    for round in 0..50 {
        let key = format!("k{round}");
        let begin = |body: &'static [u8]| {
            let (journal, mut plan) = (journal.clone(), plan(&key, body));
            tokio::spawn(async move { journal.begin(&mut plan).await })
        };
        let (one, two) = (begin(b"one"), begin(b"two"));
        let (one, two) = (one.await.unwrap(), two.await.unwrap());
        let refused = [&one, &two].into_iter().filter_map(|begun| begun.as_ref().err());
        assert!(matches!(refused.collect::<Vec<_>>()[..], [Error::Mismatch { .. }]), "round {round}");
    }
}

#[test]
fn debug_shows_no_body_query_or_key() {
    let (_directory, journal) = open();
    append(&journal, "order-4711");
    let shown = format!("{journal:?} {:?} {:?}", journal.open_calls(), stored("order-4711", b"book").head());
    let body = format!("{:?}", b"book");
    assert!(!["4711", "book", body.as_str(), "dry=1"].iter().any(|part| shown.contains(part)), "{shown}");
}

/// Begins a call and ends it with an answer.
async fn answered(journal: &Journal, key: &str, body: &[u8]) {
    let entry = journal.begin(&mut plan(key, body)).await.unwrap();
    entry.record(End::Closed).await;
}

#[tokio::test]
async fn a_call_that_ends_waits_for_no_sync() {
    let (_directory, journal) = open();
    let entry = journal.begin(&mut plan("a", b"book")).await.unwrap();
    // A sync would wait for its turn.
    let _turn = journal.shared.syncing.lock().await;
    entry.record(End::Closed).await;
    let state = journal.shared.state.lock();
    assert_eq!((state.appended, state.synced), (2, 1));
}

#[tokio::test]
async fn the_log_is_rewritten_by_a_call_that_begins() {
    let (directory, journal) = open();
    let length = || fs::metadata(directory.path().join("calls.log")).unwrap().len();
    let large = vec![b'x'; 1 + REWRITE_MIN as usize];
    answered(&journal, "a", &large).await;
    assert!(length() > REWRITE_MIN);
    answered(&journal, "b", b"book").await;
    assert!(length() < 1_000);
    drop(journal);
    let journal = Journal::open(directory.path().to_owned(), IfMissing::Refuse).unwrap();
    assert!(journal.open_calls().is_empty());
}

#[cfg(unix)]
#[tokio::test]
async fn a_log_of_open_calls_is_not_rewritten() {
    use std::os::unix::fs::MetadataExt;

    let (directory, journal) = open();
    let file = || fs::metadata(directory.path().join("calls.log")).unwrap();
    let first = file().ino();
    // The bodies are small: most of a frame is its head.
    let call = stored("a", b"book");
    for _ in 0..5_000 {
        append_stored(&journal, call.clone());
    }
    assert!(file().len() > REWRITE_MIN);
    drop(journal.begin(&mut plan("last", b"book")).await.unwrap());
    assert_eq!(file().ino(), first);
    let live = journal.shared.state.lock().live_size;
    assert!(live > file().len() - 1_000, "{live} of {}", file().len());
    drop(journal);
    let journal = Journal::open(directory.path().to_owned(), IfMissing::Refuse).unwrap();
    assert_eq!(journal.shared.state.lock().live_size, live);
}

#[tokio::test]
async fn a_call_of_another_journal_is_neither_forgotten_nor_resumed() {
    let (_one, one) = open();
    let (_other, other) = open();
    append(&one, "a");
    append(&other, "b");
    other.shared.state.lock().calls.values_mut().for_each(|call| call.running = 0);
    let call = one.open_calls().remove(0);
    assert_eq!(call.id, other.open_calls()[0].id);
    other.forget(&call).await.unwrap();
    assert!(other.continue_call(&call).await.is_none());
    assert_eq!(other.open_calls().len(), 1);
    one.forget(&call).await.unwrap();
    one.forget(&call).await.unwrap();
    assert!(one.open_calls().is_empty());
}
