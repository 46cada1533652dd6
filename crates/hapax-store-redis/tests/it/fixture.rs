//! A store on a server of its own, and short ways to ask it for things.

use std::time::Duration;

use hapax_core::{
    Claim, ClaimRequest, Class, Fenced, Fingerprint, Format, Key, Lease, Nonce, OnLapse, Recorded, Scope,
    ScopedKey, Store,
};
use hapax_store_redis::{Options, RedisStore};
use hapax_testkit::servers::RedisServer;

pub(crate) const LEASE: Duration = Duration::from_secs(30);
pub(crate) const RETENTION: Duration = Duration::from_secs(24 * 3600);
pub(crate) const UNCERTAIN_RETENTION: Duration = Duration::from_secs(30 * 24 * 3600);

/// Long enough for a machine that pauses: tests that wait for an answer do not want a timeout.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn options(server: &RedisServer) -> Options {
    // Looks that a store takes by itself would be counted with those that a test is about.
    RedisStore::options(&server.url()).unwrap().timeout(PATIENCE).check_every(RETENTION)
}

pub(crate) async fn connect(server: &RedisServer) -> RedisStore {
    options(server).connect().await.unwrap()
}

pub(crate) fn ask(name: &str) -> ClaimRequest {
    ClaimRequest {
        key: ScopedKey::new(Scope::new("POST /orders"), &Key::new(name).unwrap()),
        fingerprint: Fingerprint::empty(),
        nonce: Nonce::random(),
        lease: LEASE,
        on_lapse: OnLapse::Uncertain,
        attempts_max: 3,
        uncertain_retention: UNCERTAIN_RETENTION,
    }
}

pub(crate) fn done(text: &str) -> Recorded {
    Recorded::new(Class::Success, Format::FUNCTION, text.to_owned())
}

pub(crate) async fn acquire(store: &dyn Store, name: &str) -> Lease {
    match store.claim(&ask(name)).await.unwrap() {
        Claim::Acquired(lease) => lease,
        other => panic!("{name} was not acquired: {other:?}"),
    }
}

pub(crate) async fn finish(store: &dyn Store, name: &str, text: &str) -> Lease {
    let lease = acquire(store, name).await;
    assert_eq!(store.complete(&lease, &done(text), RETENTION).await.unwrap(), Fenced::Applied);
    lease
}

/// What a retry of the operation is answered with.
pub(crate) async fn replayed(store: &dyn Store, name: &str) -> Recorded {
    match store.claim(&ask(name)).await.unwrap() {
        Claim::Replay { recorded, .. } => recorded,
        other => panic!("{name} was not replayed: {other:?}"),
    }
}
