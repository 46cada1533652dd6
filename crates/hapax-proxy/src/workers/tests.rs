use std::thread::{self, ThreadId};

use hyper::rt::Executor as _;
use tokio::sync::{mpsc, oneshot};

use super::*;

/// A task that sends the id of its thread and runs until the sender is dropped.
fn task(seen: &mpsc::UnboundedSender<ThreadId>) -> (oneshot::Sender<()>, impl Future<Output = ()> + use<>) {
    let (end, ended) = oneshot::channel();
    let seen = seen.clone();
    let task = async move {
        let _ = seen.send(thread::current().id());
        let _ = ended.await;
    };
    (end, task)
}

#[tokio::test]
async fn connections_are_spread_evenly_over_the_workers() {
    let threads = WorkerThreads::with_count(3).unwrap();
    let workers = threads.workers();
    let (seen, mut seen_on) = mpsc::unbounded_channel();
    let mut running = Vec::new();
    let mut threads = Vec::new();
    for _ in 0..6 {
        let (end, connection) = task(&seen);
        workers.spawn(connection);
        threads.push(seen_on.recv().await.unwrap());
        running.push(end);
    }
    for thread in &threads[..3] {
        assert_eq!(threads.iter().filter(|other| *other == thread).count(), 2, "{threads:?}");
    }
}

#[tokio::test]
async fn streams_leave_a_worker_that_has_more_than_twice_the_tasks_of_another() {
    let threads = WorkerThreads::with_count(2).unwrap();
    let workers = threads.workers();
    let (seen, mut seen_on) = mpsc::unbounded_channel();
    let (_running, tasks): (Vec<_>, Vec<_>) = (0..4).map(|_| task(&seen)).unzip();
    let streams = StreamExecutor(workers.clone());
    // The connection of the streams counts as a task.
    let connection = workers.0[0].spawn(async move {
        let mut is_same_worker = Vec::new();
        for task in tasks {
            streams.execute(task);
            is_same_worker.push(seen_on.recv().await.unwrap() == thread::current().id());
        }
        is_same_worker
    });
    assert_eq!(connection.await.unwrap(), [false, true, true, false]);
}

#[test]
fn tasks_are_dropped_with_their_worker() {
    let threads = WorkerThreads::with_count(1).unwrap();
    let workers = threads.workers();
    let (held, dropped) = std::sync::mpsc::channel::<()>();
    workers.spawn(async move {
        let _held = held;
        std::future::pending::<()>().await;
    });
    drop(threads);
    dropped.recv().unwrap_err();
}
