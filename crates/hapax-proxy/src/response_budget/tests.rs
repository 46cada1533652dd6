use std::future::pending;

use super::*;

const LENGTH: usize = 10_000;
const HOUR: Duration = Duration::from_secs(3600);

fn connection(untaken: &Arc<Untaken>) -> Arc<Progress> {
    let progress = Arc::<Progress>::default();
    progress.count_in(untaken);
    progress
}

/// An answer over HTTP/2 that began so long ago, and what tells that it was cut off.
fn answer(connection: &Arc<Progress>, age: Duration) -> (Arc<Leaving>, AbortHandle) {
    let (task, _registration) = AbortHandle::new_pair();
    (began(connection, Some(Stream::new(task.clone())), age), task)
}

fn began(connection: &Arc<Progress>, stream: Option<Stream>, age: Duration) -> Arc<Leaving> {
    let mut leaving = Leaving::new(connection, stream).unwrap();
    Arc::get_mut(&mut leaving).unwrap().begun -= age;
    leaving
}

fn buffer() -> Bytes {
    vec![7; LENGTH].into()
}

fn bytes(untaken: &Untaken) -> usize {
    untaken.ledger.lock().bytes
}

#[test]
fn bytes_count_until_their_last_piece_is_gone() {
    let untaken = Untaken::new(usize::MAX);
    let (leaving, _) = answer(&connection(&untaken), HOUR);
    let mut held = leaving.hold(buffer());
    assert_eq!(held, buffer());
    let piece = held.split_to(10);
    drop(held);
    assert_eq!(bytes(&untaken), LENGTH);
    drop(piece);
    assert_eq!(bytes(&untaken), 0);
    let ledger = untaken.ledger.lock();
    assert!(ledger.buffers.is_empty() && ledger.holds.is_empty());
}

#[test]
fn shared_bytes_count_once() {
    let untaken = Untaken::new(2 * LENGTH);
    let connection = connection(&untaken);
    let shared = buffer();
    let held: Vec<_> = (0..100)
        .map(|_| {
            let (leaving, task) = answer(&connection, HOUR);
            (leaving.hold(shared.clone()), task)
        })
        .collect();
    assert_eq!(bytes(&untaken), LENGTH);
    assert!(held.iter().all(|(_, task)| !task.is_aborted()));
    drop(held);
    assert_eq!(bytes(&untaken), 0);
}

#[test]
fn the_slowest_are_cut_off_when_there_is_too_much() {
    let untaken = Untaken::new(3 * LENGTH);
    let connection = connection(&untaken);
    let (swift, swift_task) = answer(&connection, 4 * HOUR);
    let (slow, slow_task) = answer(&connection, 4 * HOUR);
    let (young, young_task) = answer(&connection, HOUR);
    (0..10).for_each(|_| swift.taken());
    let _held = [swift.hold(buffer()), slow.hold(buffer()), young.hold(buffer())];
    assert!(!slow_task.is_aborted(), "there is room for three");
    let (newest, newest_task) = answer(&connection, 5 * HOUR);
    let _newest = newest.hold(buffer());
    // One more than has to go, so that there is room for a while.
    let cut = [swift_task, slow_task, young_task, newest_task].map(|task| task.is_aborted());
    assert_eq!(cut, [false, true, true, false]);
    assert_eq!(bytes(&untaken), 2 * LENGTH);
}

/// To cut off one of those that share a buffer frees nothing.
#[test]
fn all_that_share_a_buffer_go_before_its_bytes_do() {
    let untaken = Untaken::new(LENGTH);
    let connection = connection(&untaken);
    let shared = buffer();
    let (one, one_task) = answer(&connection, HOUR);
    let (two, two_task) = answer(&connection, HOUR);
    let _shared = [one.hold(shared.clone()), two.hold(shared)];
    let (newest, newest_task) = answer(&connection, HOUR);
    let _newest = newest.hold(buffer());
    assert_eq!([one_task, two_task, newest_task].map(|task| task.is_aborted()), [true, true, false]);
    assert_eq!(bytes(&untaken), LENGTH);
}

#[test]
fn an_answer_that_is_larger_than_all_may_be_is_served_alone() {
    let untaken = Untaken::new(LENGTH / 2);
    let (leaving, task) = answer(&connection(&untaken), HOUR);
    let _held = leaving.hold(buffer());
    assert!(!task.is_aborted());
}

#[tokio::test]
async fn an_answer_without_a_stream_is_cut_off_with_its_connection() {
    let untaken = Untaken::new(LENGTH);
    let [of_http2, of_http1] = [connection(&untaken), connection(&untaken)];
    let (task, _registration) = AbortHandle::new_pair();
    let stream = Stream::new(task.clone());
    stream.over();
    // All of it was handed to the connection, which alone holds it.
    let over = began(&of_http2, Some(stream), HOUR);
    let _over = over.hold(buffer());
    let whole = began(&of_http1, None, HOUR);
    let _whole = whole.hold(buffer());
    of_http2.unless_cut_off(pending()).await;
    assert!(!task.is_aborted());
    let newest = began(&of_http2, None, HOUR);
    let _newest = newest.hold(buffer());
    of_http1.unless_cut_off(pending()).await;
    assert_eq!(bytes(&untaken), LENGTH);
}

/// What was handed to a connection stays there for as long as nothing leaves on it, and so does the reset.
#[tokio::test]
async fn a_connection_on_which_the_reset_does_not_leave_is_cut_off() {
    let untaken = Untaken::new(LENGTH);
    let stalled = connection(&untaken);
    let (leaving, task) = answer(&stalled, HOUR);
    let _held = leaving.hold(buffer());
    let (newest, _) = answer(&connection(&untaken), HOUR);
    let _newest = newest.hold(buffer());
    assert!(task.is_aborted());
    for hold in untaken.ledger.lock().holds.values_mut() {
        hold.cut_at = hold.cut_at.map(|at| at - 2 * STUCK);
    }
    let (next, _) = answer(&connection(&untaken), HOUR);
    let _next = next.hold(buffer());
    stalled.unless_cut_off(pending()).await;
}
