//! Round trips: two for a fresh operation, one for a replay, and five in a transaction.
//!
//! These tests are single-threaded, so that statements which are polled together are sent together.

use futures_util::future::join_all;
use hapax_core::{Claim, Store};
use hapax_testkit::servers::PostgresServer;

use crate::counting::Counting;
use crate::fixture::{RETENTION, acquire, ask, done, finish, options, replayed};
use crate::shop::{Shop, client};

#[tokio::test]
async fn a_fresh_operation_takes_two_and_a_replay_one() {
    let server = PostgresServer::shared();
    let counting = Counting::before(server.port());
    let store = options(&counting.url()).connect().await.unwrap();
    finish(&store, "warm", "done").await;
    for number in 0..10 {
        counting.trips();
        let lease = acquire(&store, &format!("fresh {number}")).await;
        assert_eq!(counting.trips(), 1, "the claim");
        store.complete(&lease, &done("done"), RETENTION).await.unwrap();
        assert_eq!(counting.trips(), 1, "the completion");
        replayed(&store, "warm").await;
        assert_eq!(counting.trips(), 1, "the replay");
    }
}

#[tokio::test]
async fn a_busy_key_takes_one_and_a_takeover_two() {
    let server = PostgresServer::shared();
    let counting = Counting::before(server.port());
    let store = options(&counting.url()).connect().await.unwrap();
    let lease = acquire(&store, "busy").await;
    counting.trips();
    assert!(matches!(store.claim(&ask("busy")).await.unwrap(), Claim::Busy { .. }));
    assert_eq!(counting.trips(), 1);
    store.release(&lease, None).await.unwrap();
    counting.trips();
    assert_eq!(acquire(&store, "busy").await.fence.attempt, 2);
    assert_eq!(counting.trips(), 2, "to read and to take over");
}

/// A pooler may take the first of two replies for the last one. If the client is killed then, the second is delivered to
/// the next client on that server connection.
#[tokio::test]
async fn no_connection_has_two_statements_in_flight() {
    const MANY: usize = 20;
    let server = PostgresServer::shared();
    let counting = Counting::before(server.port());
    let store = options(&counting.url()).connect().await.unwrap();
    let asks = || (0..MANY).map(|number| ask(&format!("order {number}"))).collect::<Vec<_>>();
    counting.together_max();
    for round in ["fresh", "taken over"] {
        let asks = asks();
        let claims = join_all(asks.iter().map(|ask| store.claim(ask))).await;
        for claim in claims {
            let Claim::Acquired(lease) = claim.unwrap() else { panic!("{round}: not acquired") };
            store.release(&lease, None).await.unwrap();
        }
        assert_eq!(counting.together_max(), 1, "{round}");
    }
    finish(&store, "finished", "done").await;
    replayed(&store, "finished").await;
    assert_eq!(counting.together_max(), 1, "replayed");
}

#[tokio::test]
async fn work_in_a_transaction_takes_five_besides_its_own() {
    let shop = Shop::open().await;
    let counting = Counting::before(shop.server.port());
    let mut client = client(counting.url().trim_end_matches("?listen=off")).await;
    let mut tx = client.transaction().await.unwrap();
    for (number, is_replayed, trips) in [(1, false, 5), (1, true, 3)] {
        counting.trips();
        let once = shop.once(&mut tx, &format!("key-{number}"));
        let done = once.run(async |_| Ok::<_, std::convert::Infallible>(number)).await.unwrap();
        assert_eq!((done.replayed, counting.trips()), (is_replayed, trips));
    }
}
