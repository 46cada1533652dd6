//! Lost replies and forgotten scripts: repeating the call with the same nonce resolves them.

use std::time::Duration;

use hapax_core::{Claim, Fenced, Store, StoreErrorKind};
use hapax_testkit::servers::RedisServer;

use crate::fixture::{RETENTION, acquire, ask, connect, done, options, replayed};

#[tokio::test]
async fn a_script_missing_from_the_cache_is_sent_again_with_its_text() {
    let server = RedisServer::start();
    let store = connect(&server).await;
    for name in ["first", "second"] {
        let lease = acquire(&store, name).await;
        server.command(&["SCRIPT", "FLUSH"]);
        assert_eq!(store.complete(&lease, &done(name), RETENTION).await.unwrap(), Fenced::Applied);
        assert_eq!(replayed(&store, name).await, done(name));
    }
    assert_eq!(server.calls("eval"), 3, "the mark and two completions");
}

/// A server takes a command, is stopped before it replies and applies the command later: the result is unknown, and
/// repeating the call resolves it.
#[tokio::test]
async fn a_completion_with_a_lost_reply_can_be_repeated() {
    let server = RedisServer::start();
    let patient = connect(&server).await;
    let hasty = options(&server).timeout(Duration::from_millis(200)).connect().await.unwrap();
    let ask = ask("open");
    let Claim::Acquired(lease) = patient.claim(&ask).await.unwrap() else { panic!("it is fresh") };
    server.pause();
    let lost = hasty.complete(&lease, &done("once"), RETENTION).await.unwrap_err();
    assert_eq!(lost.kind(), StoreErrorKind::Unknown);
    server.resume();
    assert_eq!(patient.complete(&lease, &done("once"), RETENTION).await.unwrap(), Fenced::Applied);
    assert_eq!(replayed(&patient, "open").await, done("once"));
    // A delayed copy of the claim acquires nothing.
    assert!(matches!(patient.claim(&ask).await.unwrap(), Claim::Replay { .. }));
}
