//! Answers that are lost on their way, and scripts that the server has forgotten: the nonce tells the truth.

use std::time::Duration;

use hapax_core::{Claim, Fenced, Store, StoreErrorKind};
use hapax_testkit::servers::RedisServer;

use crate::fixture::{RETENTION, acquire, ask, connect, done, options, replayed};

#[tokio::test]
async fn a_forgotten_script_is_sent_again_with_its_text() {
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

/// A server that takes a command, is stopped before it can answer and applies it later: the caller does not know, and
/// sending the same again tells.
#[tokio::test]
async fn a_completion_whose_answer_was_lost_is_sent_again() {
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
    // A copy of the claim that was under way all the time acquires nothing.
    assert!(matches!(patient.claim(&ask).await.unwrap(), Claim::Replay { .. }));
}
