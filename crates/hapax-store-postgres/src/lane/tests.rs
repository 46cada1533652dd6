use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures_util::future::{join, join_all};
use hapax_core::{BoxFuture, RecordId, StoreError, StoreErrorKind};
use hapax_testkit::servers::PostgresServer;
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::Client;

use super::{BATCH_BYTES_MAX, BATCH_MAX, Entry, FLIGHTS_MAX, Lane, SHARE_MIN, Waiting, Work, sort};
use crate::config::Options;
use crate::error::{Effect, Fault, Refusal};
use crate::link::Link;
use crate::sql::Sql;

/// A call about the record with this number, of this size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Call {
    id: RecordId,
    bytes: usize,
}

type Answered = oneshot::Receiver<Result<&'static str, StoreError>>;

impl Work for Call {
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

fn entry(number: u16, bytes: usize) -> (Entry<Call>, Answered) {
    let work = Call { id: numbered(number), bytes };
    let (caller, answered) = oneshot::channel();
    (Entry { work, caller, is_decided: Arc::new(AtomicBool::new(false)) }, answered)
}

fn numbers(batch: &[Entry<Call>]) -> Vec<u16> {
    batch.iter().map(|entry| number(&entry.work.id)).collect()
}

#[test]
fn a_batch_has_each_key_once_and_in_order() {
    let (entries, callers): (VecDeque<_>, Vec<_>) =
        [3, 1, 3, 2, 1, 3].map(|number| entry(number, 0)).into_iter().unzip();
    let mut waiting = Waiting { entries, flights: 0, aloft: 1 };
    assert_eq!(numbers(&waiting.take()), [1, 2, 3]);
    assert_eq!(numbers(&waiting.take()), [1, 3], "the others have kept their places");
    assert_eq!(numbers(&waiting.take()), [3]);
    assert!(waiting.take().is_empty());
    drop(callers);
}

#[test]
fn a_batch_is_limited_in_number_and_in_bytes() {
    let count = u16::try_from(BATCH_MAX).unwrap() + 1;
    let (entries, callers): (VecDeque<_>, Vec<_>) = (0..count).map(|number| entry(number, 0)).unzip();
    let mut waiting = Waiting { entries, flights: 0, aloft: 1 };
    assert_eq!((waiting.take().len(), waiting.take().len()), (BATCH_MAX, 1));

    let large = [BATCH_BYTES_MAX / 2, BATCH_BYTES_MAX / 2, 1, BATCH_BYTES_MAX * 2, 1];
    let numbered = (0..).zip(large).map(|(number, bytes)| entry(number, bytes));
    let (entries, more): (VecDeque<_>, Vec<_>) = numbered.unzip();
    let mut waiting = Waiting { entries, flights: 0, aloft: 1 };
    assert_eq!(numbers(&waiting.take()), [0, 1]);
    assert_eq!(numbers(&waiting.take()), [2]);
    assert_eq!(numbers(&waiting.take()), [3], "what is larger than a batch goes alone");
    assert_eq!(numbers(&waiting.take()), [4]);
    drop((callers, more));
}

/// Those who are answered together come back together, so a batch of all would stay one, and one connection be at work.
#[test]
fn many_that_come_at_once_share_out_among_the_batches_that_may_go() {
    let few = u16::try_from(SHARE_MIN).unwrap();
    let taken = |count: u16, aloft: usize| {
        let (entries, callers): (VecDeque<_>, Vec<_>) = (0..count).map(|number| entry(number, 0)).unzip();
        let batch = Waiting { entries, flights: FLIGHTS_MAX, aloft }.take().len();
        drop(callers);
        batch
    };
    assert_eq!(taken(200, 0), 100);
    assert_eq!(taken(200, 1), 200, "no other can go");
    assert_eq!(taken(201, 0), 101);
    assert_eq!(taken(few, 0), SHARE_MIN, "too few to be worth two statements");
}

#[tokio::test]
async fn many_callers_keep_as_many_batches_under_way_as_may_be() {
    let (_server, lane) = lane(FLIGHTS_MAX);
    let (stage, mut sent) = mpsc::unbounded_channel();
    let calls = (0..64).map(|number| Played { id: numbered(number), stage: stage.clone() });
    let callers = join_all(calls.map(|call| lane.send(call)).collect::<Vec<_>>());
    drop(stage);
    let playing = async {
        // The second comes before anybody has answered the first.
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
fn who_is_gone_is_not_served() {
    let (first, gone) = entry(1, 0);
    let (second, caller) = entry(2, 0);
    drop(gone);
    let mut waiting = Waiting { entries: [first, second].into(), flights: 0, aloft: 1 };
    assert_eq!(numbers(&waiting.take()), [2]);
    drop(caller);
}

fn faults() -> [Fault; 3] {
    let told = |refusal: Refusal| crate::error::Told::words(refusal);
    [
        Fault::Contended(told(Refusal::Held)),
        Fault::Lost(told(Refusal::TimedOut)),
        Fault::Refused(StoreErrorKind::Full, told(Refusal::TimedOut)),
    ]
}

#[test]
fn calls_that_failed_together_are_tried_alone_and_lost_ones_again() {
    let (batch, callers): (Vec<_>, Vec<_>) = (0..3).map(|number| entry(number, 0)).unzip();
    let sorted = sort(batch, faults().map(Err).into(), false);
    assert_eq!((numbers(&sorted.alone), numbers(&sorted.lost)), (vec![0, 2], vec![1]));
    assert!(sorted.ends_connection);
    drop(callers);
}

#[test]
fn a_call_alone_is_told_what_it_met() {
    let [contended, _, refused] = faults();
    let (first, mut held) = entry(1, 0);
    sort(vec![first], vec![Err(contended)], false);
    assert_eq!(held.try_recv().unwrap().unwrap(), "held");
    let (second, mut full) = entry(2, 0);
    sort(vec![second], vec![Err(refused)], false);
    assert_eq!(full.try_recv().unwrap().unwrap_err().kind(), StoreErrorKind::Full);
}

/// The first sending may be what is in the way of the second.
#[test]
fn what_was_lost_stays_lost_until_it_is_answered() {
    for fault in faults() {
        let (lost, mut answered) = entry(1, 0);
        let sorted = sort(vec![lost], vec![Err(fault)], true);
        assert!(answered.try_recv().is_err() && numbers(&sorted.lost) == [1]);
        let told = sorted.fault.unwrap().error("claim", Effect::Write);
        assert_eq!(told.kind(), StoreErrorKind::Unknown);
    }
}

/// A call that tells the test what is sent, and is answered by it.
struct Played {
    id: RecordId,
    stage: mpsc::UnboundedSender<Sent>,
}

/// What was sent together, and where its answers go.
struct Sent {
    numbers: Vec<u16>,
    answers: oneshot::Sender<Vec<Result<&'static str, Fault>>>,
}

impl Work for Played {
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
        assert!(batch[0].stage.send(Sent { numbers, answers }).is_ok(), "the test looks");
        Box::pin(async { answered.await.unwrap() })
    }

    fn held(&self) -> Result<&'static str, StoreError> {
        Ok("held")
    }
}

/// A lane to a real server. Only the connections are made; nothing is sent to it.
fn lane(pool: usize) -> (Arc<PostgresServer>, Lane<Played>) {
    let server = PostgresServer::shared();
    let options = Options::from_url(&server.url()).unwrap().timeout(Duration::from_secs(120)).pool(pool);
    (server, Lane::new(Arc::new(Link::new(options).unwrap())))
}

#[tokio::test]
async fn a_lost_call_is_not_repeated_for_a_caller_who_is_gone() {
    let (_server, lane) = lane(1);
    let (stage, mut sent) = mpsc::unbounded_channel();
    let mut caller = Box::pin(lane.send(Played { id: numbered(1), stage }));
    let first = tokio::select! {
        first = sent.recv() => first.unwrap(),
        _ = &mut caller => panic!("nobody has answered"),
    };
    drop(caller);
    let [_, lost, _] = faults();
    first.answers.send(vec![Err(lost)]).unwrap();
    // The stage ends with the last call.
    assert!(sent.recv().await.is_none(), "it was sent again");
}

#[tokio::test]
async fn a_broken_connection_makes_room_for_those_who_go_alone() {
    let (_server, lane) = lane(1);
    let (stage, mut sent) = mpsc::unbounded_channel();
    let calls = [0, 1, 2].map(|number| Played { id: numbered(number), stage: stage.clone() });
    drop(stage);
    let callers = join_all(calls.map(|call| lane.send(call)));
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
async fn who_goes_alone_holds_up_nobody_else() {
    let (_server, lane) = lane(8);
    let lane = Arc::new(lane);
    let (stage, mut sent) = mpsc::unbounded_channel();
    let send = |number| {
        let (lane, call) = (lane.clone(), Played { id: numbered(number), stage: stage.clone() });
        tokio::spawn(async move { lane.send(call).await })
    };
    let (mut callers, mut alone) = (Vec::new(), Vec::new());
    // As many batches as may be under way at a time.
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
    assert!(alone.iter().all(|call| !call.answers.is_closed()), "it waited until they had given up");
    for call in alone.into_iter().chain([fifth]) {
        call.answers.send(vec![Ok("done")]).unwrap();
    }
    for caller in callers.into_iter().chain([other]) {
        assert_eq!(caller.await.unwrap().unwrap(), "done");
    }
}
