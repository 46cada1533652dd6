use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures_util::future::{join, join_all};
use hapax_core::{BoxFuture, RecordId, StoreError, StoreErrorKind};
use hapax_testkit::servers::PostgresServer;
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::Client;

use super::{
    BATCH_BYTES_MAX, BATCH_MAX, BatchCall, Batcher, CONCURRENT_BATCHES_MAX, PendingCall, Queue, SHARE_MIN,
    sort_answers,
};
use crate::config::Options;
use crate::error::{CallFailure, Effect, Fault};
use crate::pool::ConnectionPool;
use crate::sql::Sql;

/// A call on the record with this number, of this size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Call {
    id: RecordId,
    bytes: usize,
}

type Answered = oneshot::Receiver<Result<&'static str, StoreError>>;

impl BatchCall for Call {
    type Answer = &'static str;

    fn op(&self) -> &'static str {
        "claim"
    }

    fn id(&self) -> &RecordId {
        &self.id
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn run<'a>(
        _: &'a Client,
        _: &'a Sql,
        _: &'a [&'a Self],
        _: Duration,
    ) -> BoxFuture<'a, Vec<Result<&'static str, Fault>>> {
        unreachable!("nothing is sent in these tests")
    }

    fn held(&self) -> Result<&'static str, StoreError> {
        Ok("held")
    }
}

fn numbered(number: u16) -> RecordId {
    let mut id = [0; 32];
    id[..2].copy_from_slice(&number.to_be_bytes());
    RecordId::from_bytes(id)
}

fn number(id: &RecordId) -> u16 {
    u16::from_be_bytes(id.as_bytes()[..2].try_into().unwrap())
}

fn entry(number: u16, bytes: usize) -> (PendingCall<Call>, Answered) {
    let work = Call { id: numbered(number), bytes };
    let (caller, answered) = oneshot::channel();
    (PendingCall { work, caller, is_taken: Arc::new(AtomicBool::new(false)) }, answered)
}

fn numbers(batch: &[PendingCall<Call>]) -> Vec<u16> {
    batch.iter().map(|entry| number(&entry.work.id)).collect()
}

#[test]
fn a_batch_has_each_key_once_and_in_order() {
    let (entries, callers): (VecDeque<_>, Vec<_>) =
        [3, 1, 3, 2, 1, 3].map(|number| entry(number, 0)).into_iter().unzip();
    let mut queue = Queue { entries, tasks: 0, running: 1 };
    assert_eq!(numbers(&queue.take()), [1, 2, 3]);
    assert_eq!(numbers(&queue.take()), [1, 3], "the others keep their order");
    assert_eq!(numbers(&queue.take()), [3]);
    assert!(queue.take().is_empty());
    drop(callers);
}

#[test]
fn a_batch_is_limited_in_number_and_in_bytes() {
    let count = u16::try_from(BATCH_MAX).unwrap() + 1;
    let (entries, callers): (VecDeque<_>, Vec<_>) = (0..count).map(|number| entry(number, 0)).unzip();
    let mut queue = Queue { entries, tasks: 0, running: 1 };
    assert_eq!((queue.take().len(), queue.take().len()), (BATCH_MAX, 1));

    let large = [BATCH_BYTES_MAX / 2, BATCH_BYTES_MAX / 2, 1, BATCH_BYTES_MAX * 2, 1];
    let numbered = (0..).zip(large).map(|(number, bytes)| entry(number, bytes));
    let (entries, more): (VecDeque<_>, Vec<_>) = numbered.unzip();
    let mut queue = Queue { entries, tasks: 0, running: 1 };
    assert_eq!(numbers(&queue.take()), [0, 1]);
    assert_eq!(numbers(&queue.take()), [2]);
    assert_eq!(numbers(&queue.take()), [3], "a call above the limit is sent alone");
    assert_eq!(numbers(&queue.take()), [4]);
    drop((callers, more));
}

/// Callers that are answered together come back together, so a single batch would stay single and use one connection.
#[test]
fn a_burst_is_split_among_the_free_batches() {
    let few = u16::try_from(SHARE_MIN).unwrap();
    let taken = |count: u16, running: usize| {
        let (entries, callers): (VecDeque<_>, Vec<_>) = (0..count).map(|number| entry(number, 0)).unzip();
        let batch = Queue { entries, tasks: CONCURRENT_BATCHES_MAX, running }.take().len();
        drop(callers);
        batch
    };
    assert_eq!(taken(200, 0), 100);
    assert_eq!(taken(200, 1), 200, "no other batch is free");
    assert_eq!(taken(201, 0), 101);
    assert_eq!(taken(few, 0), SHARE_MIN, "too few to be worth two statements");
}

#[tokio::test]
async fn many_callers_keep_all_batches_in_flight() {
    let (_server, batcher) = batcher(CONCURRENT_BATCHES_MAX);
    let (stage, mut sent) = mpsc::unbounded_channel();
    let calls = (0..64).map(|number| ScriptedCall { id: numbered(number), stage: stage.clone() });
    let callers = join_all(calls.map(|call| batcher.send(call)).collect::<Vec<_>>());
    drop(stage);
    let playing = async {
        // The second arrives before the first is answered.
        let both = [sent.recv().await.unwrap(), sent.recv().await.unwrap()];
        assert_eq!(both.each_ref().map(|batch| batch.numbers.len()), [32, 32]);
        for batch in both {
            batch.answers.send(vec![Ok("done"); 32]).unwrap();
        }
    };
    let (answers, ()) = join(callers, playing).await;
    assert!(answers.iter().all(|answer| matches!(answer, Ok("done"))), "{answers:?}");
}

#[test]
fn cancelled_calls_are_not_sent() {
    let (first, gone) = entry(1, 0);
    let (second, caller) = entry(2, 0);
    drop(gone);
    let mut queue = Queue { entries: [first, second].into(), tasks: 0, running: 1 };
    assert_eq!(numbers(&queue.take()), [2]);
    drop(caller);
}

fn faults() -> [Fault; 3] {
    let message = |failure: CallFailure| crate::error::ServerMessage::words(failure);
    [
        Fault::Contended(message(CallFailure::Held)),
        Fault::Lost(message(CallFailure::TimedOut)),
        Fault::Refused(StoreErrorKind::Full, message(CallFailure::TimedOut)),
    ]
}

#[test]
fn failed_calls_are_sent_individually_and_lost_ones_again() {
    let (batch, callers): (Vec<_>, Vec<_>) = (0..3).map(|number| entry(number, 0)).unzip();
    let sorted = sort_answers(batch, faults().map(Err).into(), false);
    assert_eq!((numbers(&sorted.alone), numbers(&sorted.lost)), (vec![0, 2], vec![1]));
    assert!(sorted.ends_connection);
    drop(callers);
}

#[test]
fn a_single_call_gets_its_own_error() {
    let [contended, _, refused] = faults();
    let (first, mut held) = entry(1, 0);
    sort_answers(vec![first], vec![Err(contended)], false);
    assert_eq!(held.try_recv().unwrap().unwrap(), "held");
    let (second, mut full) = entry(2, 0);
    sort_answers(vec![second], vec![Err(refused)], false);
    assert_eq!(full.try_recv().unwrap().unwrap_err().kind(), StoreErrorKind::Full);
}

/// The first statement may be what blocks the second.
#[test]
fn a_lost_call_stays_lost_until_it_succeeds() {
    for fault in faults() {
        let (lost, mut answered) = entry(1, 0);
        let sorted = sort_answers(vec![lost], vec![Err(fault)], true);
        assert!(answered.try_recv().is_err() && numbers(&sorted.lost) == [1]);
        let error = sorted.fault.unwrap().error("claim", Effect::Write);
        assert_eq!(error.kind(), StoreErrorKind::Unknown);
    }
}

/// A call that reports to the test what is sent, and is answered by it.
struct ScriptedCall {
    id: RecordId,
    stage: mpsc::UnboundedSender<Sent>,
}

/// A batch that was sent, and the channel for its answers.
struct Sent {
    numbers: Vec<u16>,
    answers: oneshot::Sender<Vec<Result<&'static str, Fault>>>,
}

impl BatchCall for ScriptedCall {
    type Answer = &'static str;

    fn op(&self) -> &'static str {
        "claim"
    }

    fn id(&self) -> &RecordId {
        &self.id
    }

    fn bytes(&self) -> usize {
        0
    }

    fn run<'a>(
        _: &'a Client,
        _: &'a Sql,
        batch: &'a [&'a Self],
        _: Duration,
    ) -> BoxFuture<'a, Vec<Result<&'static str, Fault>>> {
        let (answers, answered) = oneshot::channel();
        let numbers = batch.iter().map(|call| number(&call.id)).collect();
        assert!(batch[0].stage.send(Sent { numbers, answers }).is_ok(), "the test receives it");
        Box::pin(async { answered.await.unwrap() })
    }

    fn held(&self) -> Result<&'static str, StoreError> {
        Ok("held")
    }
}

/// A batcher with a real server. Only connections are made; nothing is sent.
fn batcher(pool: usize) -> (Arc<PostgresServer>, Batcher<ScriptedCall>) {
    let server = PostgresServer::shared();
    let options = Options::from_url(&server.url()).unwrap().timeout(Duration::from_secs(120)).pool(pool);
    (server, Batcher::new(Arc::new(ConnectionPool::new(options).unwrap())))
}

#[tokio::test]
async fn a_lost_call_is_not_repeated_after_its_caller_has_gone() {
    let (_server, batcher) = batcher(1);
    let (stage, mut sent) = mpsc::unbounded_channel();
    let mut caller = Box::pin(batcher.send(ScriptedCall { id: numbered(1), stage }));
    let first = tokio::select! {
        first = sent.recv() => first.unwrap(),
        _ = &mut caller => panic!("it has no answer yet"),
    };
    drop(caller);
    let [_, lost, _] = faults();
    first.answers.send(vec![Err(lost)]).unwrap();
    // The channel ends with the last call.
    assert!(sent.recv().await.is_none(), "it was sent again");
}

#[tokio::test]
async fn a_broken_connection_makes_room_for_individual_calls() {
    let (_server, batcher) = batcher(1);
    let (stage, mut sent) = mpsc::unbounded_channel();
    let calls = [0, 1, 2].map(|number| ScriptedCall { id: numbered(number), stage: stage.clone() });
    drop(stage);
    let callers = join_all(calls.map(|call| batcher.send(call)));
    let playing = async {
        let together = sent.recv().await.unwrap();
        assert_eq!(together.numbers, [0, 1, 2]);
        together.answers.send(faults().map(Err).into()).unwrap();
        for _ in 0..3 {
            sent.recv().await.unwrap().answers.send(vec![Ok("done")]).unwrap();
        }
    };
    let (answers, ()) = join(callers, playing).await;
    assert!(answers.iter().all(|answer| matches!(answer, Ok("done"))), "{answers:?}");
}

#[tokio::test]
async fn individual_calls_do_not_block_the_batcher() {
    let (_server, batcher) = batcher(8);
    let batcher = Arc::new(batcher);
    let (stage, mut sent) = mpsc::unbounded_channel();
    let send = |number| {
        let (batcher, call) = (batcher.clone(), ScriptedCall { id: numbered(number), stage: stage.clone() });
        tokio::spawn(async move { batcher.send(call).await })
    };
    let (mut callers, mut alone) = (Vec::new(), Vec::new());
    // As many batches as may be in flight.
    for numbers in [[1, 2], [3, 4]] {
        callers.extend(numbers.map(send));
        let together = sent.recv().await.unwrap();
        assert_eq!(together.numbers, numbers);
        let [contended, ..] = faults();
        together.answers.send(vec![Err(contended.clone()), Err(contended)]).unwrap();
        alone.extend([sent.recv().await.unwrap(), sent.recv().await.unwrap()]);
    }
    let other = send(5);
    let fifth = sent.recv().await.unwrap();
    assert_eq!(fifth.numbers, [5]);
    assert!(alone.iter().all(|call| !call.answers.is_closed()), "it waited for them to time out");
    for call in alone.into_iter().chain([fifth]) {
        call.answers.send(vec![Ok("done")]).unwrap();
    }
    for caller in callers.into_iter().chain([other]) {
        assert_eq!(caller.await.unwrap().unwrap(), "done");
    }
}
