//! Round trips: two for a fresh operation, one for a replay.

use hapax_core::Store;
use hapax_testkit::servers::RedisServer;

use crate::fixture::{ask, connect, finish, replayed};

/// Commands sent by clients, not those called inside scripts.
fn sent(server: &RedisServer) -> u64 {
    ["set", "evalsha", "eval", "get", "time", "pttl", "wait", "hget", "multi"]
        .iter()
        .map(|name| server.calls(name))
        .sum()
}

#[tokio::test]
async fn a_fresh_operation_takes_two_and_a_replay_one() {
    let server = RedisServer::start();
    let store = connect(&server).await;
    finish(&store, "warm", "done").await;
    for number in 0..10 {
        server.command(&["CONFIG", "RESETSTAT"]);
        finish(&store, &format!("fresh {number}"), "done").await;
        // The script reads the time and the record, and writes the record.
        assert_eq!((server.calls("set"), server.calls("evalsha"), server.calls("eval")), (2, 1, 0));
        assert_eq!(sent(&server) - server.calls("get") - server.calls("time"), 3);

        server.command(&["CONFIG", "RESETSTAT"]);
        replayed(&store, "warm").await;
        assert_eq!(sent(&server), 1);
    }
}

#[tokio::test]
async fn a_busy_key_takes_one_more_script() {
    let server = RedisServer::start();
    let store = connect(&server).await;
    store.claim(&ask("busy")).await.unwrap();
    store.claim(&ask("busy")).await.unwrap();
    server.command(&["CONFIG", "RESETSTAT"]);
    store.claim(&ask("busy")).await.unwrap();
    assert_eq!((server.calls("set"), server.calls("evalsha")), (1, 1));
}
