use std::future::pending;

use super::*;

const LENGTH: usize = 10_000;
const HOUR: Duration = Duration::from_secs(3600);

fn connection(budget: &Arc<ResponseBudget>) -> Arc<ConnectionState> {
    let connection = Arc::<ConnectionState>::default();
    connection.set_budget(budget);
    connection
}

/// A response over HTTP/2 of this age, and the handle that tells whether it was aborted.
fn http2_response(connection: &Arc<ConnectionState>, age: Duration) -> (Arc<BufferedResponse>, AbortHandle) {
    let (task, _registration) = AbortHandle::new_pair();
    (begun_ago(connection, Some(StreamHandle::new(task.clone())), age), task)
}

fn begun_ago(
    connection: &Arc<ConnectionState>,
    stream: Option<StreamHandle>,
    age: Duration,
) -> Arc<BufferedResponse> {
    let mut response = BufferedResponse::new(connection, stream).unwrap();
    Arc::get_mut(&mut response).unwrap().begun -= age;
    response
}

fn buffer() -> Bytes {
    vec![7; LENGTH].into()
}

fn bytes(budget: &ResponseBudget) -> usize {
    budget.usage.lock().bytes
}

#[test]
fn bytes_count_until_their_last_part_is_dropped() {
    let budget = ResponseBudget::new(usize::MAX);
    let (response, _) = http2_response(&connection(&budget), HOUR);
    let mut held = response.count(buffer());
    assert_eq!(held, buffer());
    let part = held.split_to(10);
    drop(held);
    assert_eq!(bytes(&budget), LENGTH);
    drop(part);
    assert_eq!(bytes(&budget), 0);
    let usage = budget.usage.lock();
    assert!(usage.buffers.is_empty() && usage.held.is_empty());
}

#[test]
fn shared_bytes_count_once() {
    let budget = ResponseBudget::new(2 * LENGTH);
    let connection = connection(&budget);
    let shared = buffer();
    let held: Vec<_> = (0..100)
        .map(|_| {
            let (response, task) = http2_response(&connection, HOUR);
            (response.count(shared.clone()), task)
        })
        .collect();
    assert_eq!(bytes(&budget), LENGTH);
    assert!(held.iter().all(|(_, task)| !task.is_aborted()));
    drop(held);
    assert_eq!(bytes(&budget), 0);
}

#[test]
fn aborts_the_slowest_when_the_budget_is_exceeded() {
    let budget = ResponseBudget::new(3 * LENGTH);
    let connection = connection(&budget);
    let (swift, swift_task) = http2_response(&connection, 4 * HOUR);
    let (slow, slow_task) = http2_response(&connection, 4 * HOUR);
    let (young, young_task) = http2_response(&connection, HOUR);
    (0..10).for_each(|_| swift.part_sent());
    let _held = [swift.count(buffer()), slow.count(buffer()), young.count(buffer())];
    assert!(!slow_task.is_aborted(), "the budget is for three");
    let (newest, newest_task) = http2_response(&connection, 5 * HOUR);
    let _newest = newest.count(buffer());
    // One more than necessary is aborted, so that the budget is not exceeded again immediately.
    let aborted = [swift_task, slow_task, young_task, newest_task].map(|task| task.is_aborted());
    assert_eq!(aborted, [false, true, true, false]);
    assert_eq!(bytes(&budget), 2 * LENGTH);
}

/// Aborting one of two holders of a buffer frees nothing.
#[test]
fn a_shared_buffer_is_freed_with_its_last_holder() {
    let budget = ResponseBudget::new(LENGTH);
    let connection = connection(&budget);
    let shared = buffer();
    let (one, one_task) = http2_response(&connection, HOUR);
    let (two, two_task) = http2_response(&connection, HOUR);
    let _shared = [one.count(shared.clone()), two.count(shared)];
    let (newest, newest_task) = http2_response(&connection, HOUR);
    let _newest = newest.count(buffer());
    assert_eq!([one_task, two_task, newest_task].map(|task| task.is_aborted()), [true, true, false]);
    assert_eq!(bytes(&budget), LENGTH);
}

#[test]
fn a_single_response_larger_than_the_budget_is_served() {
    let budget = ResponseBudget::new(LENGTH / 2);
    let (response, task) = http2_response(&connection(&budget), HOUR);
    let _held = response.count(buffer());
    assert!(!task.is_aborted());
}

#[tokio::test]
async fn a_response_without_a_stream_is_aborted_with_its_connection() {
    let budget = ResponseBudget::new(LENGTH);
    let [of_http2, of_http1] = [connection(&budget), connection(&budget)];
    let (task, _registration) = AbortHandle::new_pair();
    let stream = StreamHandle::new(task.clone());
    stream.finished();
    // Only the connection still holds the bytes.
    let over = begun_ago(&of_http2, Some(stream), HOUR);
    let _over = over.count(buffer());
    let whole = begun_ago(&of_http1, None, HOUR);
    let _whole = whole.count(buffer());
    of_http2.run_until_aborted(pending()).await;
    assert!(!task.is_aborted());
    let newest = begun_ago(&of_http2, None, HOUR);
    let _newest = newest.count(buffer());
    of_http1.run_until_aborted(pending()).await;
    assert_eq!(bytes(&budget), LENGTH);
}

/// On a stalled connection neither the response nor its reset leaves.
#[tokio::test]
async fn a_connection_on_which_a_reset_is_stuck_is_closed() {
    let budget = ResponseBudget::new(LENGTH);
    let stalled = connection(&budget);
    let (response, task) = http2_response(&stalled, HOUR);
    let _held = response.count(buffer());
    let (newest, _) = http2_response(&connection(&budget), HOUR);
    let _newest = newest.count(buffer());
    assert!(task.is_aborted());
    for held in budget.usage.lock().held.values_mut() {
        held.aborted_at = held.aborted_at.map(|at| at - 2 * STUCK_AFTER);
    }
    let (next, _) = http2_response(&connection(&budget), HOUR);
    let _next = next.count(buffer());
    stalled.run_until_aborted(pending()).await;
}
