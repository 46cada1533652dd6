//! Handlers of events whose writes are committed together with their outcome, on real servers.

use std::sync::Arc;

use hapax::events::{Data, Event, HandlerOutcome, Router};
use hapax::{Hapax, OnceError};
use hapax_core::State;
use hapax_store_postgres::Tx;
use tokio::sync::mpsc;

use crate::counting::Counting;
use crate::fixture::options;
use crate::shipping::{CONSUMER, Order, Process, STORE_TIMEOUT, state};
use crate::shop::{Shop, key};

#[tokio::test]
async fn writes_and_outcome_are_committed_together_and_a_duplicate_runs_nothing() {
    let shop = Shop::open().await;
    let process = Process::start(&shop).await;
    let first = process.process("order-1", "well").await.unwrap();
    assert_eq!((first.replayed, first.recorded), (false, true));
    assert_eq!((shop.effects("order-1"), state(&shop, "order-1").await), (1, State::Completed));
    let second = process.process("order-1", "well").await.unwrap();
    assert_eq!((second.replayed, second.value), (true, first.value));
    // So does a copy in another process.
    let other = Process::start(&shop).await;
    assert!(other.process("order-1", "well").await.unwrap().replayed);
    assert_eq!((process.runs(), other.runs(), shop.effects("order-1")), (1, 0, 1));
}

#[tokio::test]
async fn an_error_rolls_back_and_releases() {
    let shop = Shop::open().await;
    let process = Process::start(&shop).await;
    let failed = process.process("order-1", "fails").await.unwrap_err();
    assert!(matches!(&failed, OnceError::Failed(error) if error == "no carrier"), "{failed:?}");
    assert_eq!((shop.effects("order-1"), state(&shop, "order-1").await), (0, State::Released));
    assert!(!process.process("order-1", "well").await.unwrap().replayed);
    assert_eq!((process.runs(), shop.effects("order-1")), (2, 1));
}

#[tokio::test]
async fn a_final_error_is_recorded_without_the_writes_and_an_unknown_end_commits_nothing() {
    let shop = Shop::open().await;
    let process = Process::start(&shop).await;
    let ends =
        [("refuses", State::Failed), ("does not know", State::Uncertain), ("panics", State::Uncertain)];
    for (name, end) in ends {
        process.process(name, name).await.unwrap_err();
        assert_eq!((shop.effects(name), state(&shop, name).await), (0, end), "{name}");
    }
}

/// Data that no run can decode begins no transaction.
#[tokio::test]
async fn an_event_that_cannot_be_decoded_runs_nothing() {
    let shop = Shop::open().await;
    let store = Arc::new(shop.options().connect().await.unwrap());
    let router = Router::new(()).on(
        "order.created",
        store.in_tx(|(), _: Tx, Data(order): Data<Order>| async move { Ok::<_, String>(order.name) }),
    );
    let hapax = Hapax::builder(store).build();
    let attempt = hapax.once(CONSUMER, key("order-1")).run(move |context| async move {
        let outcome = router.call(context, Event::new("order.created").data("{}")).await;
        Ok::<_, String>(matches!(outcome, HandlerOutcome::Permanent { .. }))
    });
    assert!(attempt.await.unwrap().value);
}

/// A transaction of another store would not be committed with the outcome.
#[tokio::test]
async fn a_handler_of_another_store_does_not_run() {
    let shop = Shop::open().await;
    let mut process = Process::start(&shop).await;
    process.hapax = Hapax::builder(Arc::new(shop.options().connect().await.unwrap())).build();
    let failed = process.process("order-1", "well").await.unwrap_err();
    assert!(matches!(&failed, OnceError::Failed(error) if error.contains("same store")), "{failed:?}");
    assert_eq!((process.runs(), state(&shop, "order-1").await), (0, State::Released));
}

/// Between the statement and the commit the process is gone, with all its connections.
#[test]
fn a_process_that_dies_before_the_commit_leaves_nothing() {
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (here, dying) = (runtime(), runtime());
    let shop = here.block_on(Shop::open());
    let (first, mut effected) = dying.block_on(async {
        let mut process = Process::start(&shop).await;
        let effected = std::mem::replace(&mut process.effected, mpsc::unbounded_channel().1);
        (process, effected)
    });
    dying.spawn(async move { first.process("order-1", "never ends").await });
    here.block_on(effected.recv()).unwrap();
    dying.shutdown_background();

    here.block_on(async {
        assert_eq!((shop.effects("order-1"), state(&shop, "order-1").await), (0, State::InProgress));
        // Its lease ends.
        shop.server.sql(&format!("UPDATE {}.record SET lease_until = 0", shop.schema));
        let second = Process::start(&shop).await;
        let done = second.process("order-1", "well").await.unwrap();
        assert_eq!((done.replayed, second.runs(), shop.effects("order-1")), (false, 1, 1));
    });
}

/// The commit is applied and its answer is lost: the attempt finds out what was recorded.
#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_one_row() {
    let shop = Shop::open().await;
    let between = Arc::new(Counting::before(shop.server.port()));
    let store = options(&between.url()).schema(&shop.schema).connect().await.unwrap();
    let process = Process::new(&shop, store, Some(between.clone()));
    let done = process.process("order-1", "loses the commit's answer").await.unwrap();
    assert_eq!((done.replayed, between.left_to_lose()), (true, 0));
    let again = process.process("order-1", "loses the commit's answer").await.unwrap();
    assert_eq!((again.value, process.runs(), shop.effects("order-1")), (done.value, 1, 1));
}

/// One handler keeps the only connection for longer than the store waits for one: the other waits for it and does not fail.
#[tokio::test]
async fn a_handler_waits_for_a_connection() {
    let shop = Shop::open().await;
    let narrow = shop.options().pool(1).timeout(STORE_TIMEOUT).connect().await.unwrap();
    let mut process = Process::new(&shop, narrow, None);
    let mut effected = std::mem::replace(&mut process.effected, mpsc::unbounded_channel().1);
    let slow = process.process("order-1", "outlasts the store's timeout");
    let other = async {
        effected.recv().await.unwrap();
        process.process("order-2", "well").await
    };
    let (slow, other) = futures_util::future::join(slow, other).await;
    assert!(!slow.unwrap().replayed && !other.unwrap().replayed);
    assert_eq!((process.runs(), shop.effects("order-1"), shop.effects("order-2")), (2, 1, 1));
}
