//! Short ways to build requests and outcomes and to run operations, for tests of what only one store does.

use std::time::Duration;

use hapax_core::{
    Claim, ClaimRequest, Class, Fenced, Fingerprint, Format, Key, Lease, Nonce, OnLapse, Recorded, Scope,
    ScopedKey, Store,
};

/// The lease of every claim.
pub const LEASE: Duration = Duration::from_secs(30);
/// The retention of every outcome.
pub const RETENTION: Duration = Duration::from_secs(24 * 3600);
/// The retention of uncertain records.
pub const UNCERTAIN_RETENTION: Duration = Duration::from_secs(30 * 24 * 3600);

/// The key `name` in the one scope that is used here.
///
/// # Panics
/// When `name` is no valid key.
pub fn scoped(name: &str) -> ScopedKey {
    ScopedKey::new(Scope::new("POST /orders"), &Key::new(name).expect("a name is a key"))
}

/// A claim of the key `name`, with a new nonce.
///
/// # Panics
/// When `name` is no valid key.
pub fn ask(name: &str) -> ClaimRequest {
    ask_for(scoped(name))
}

/// A claim of `key`, with a new nonce.
pub fn ask_for(key: ScopedKey) -> ClaimRequest {
    ClaimRequest {
        key,
        fingerprint: Fingerprint::empty(),
        nonce: Nonce::random(),
        lease: LEASE,
        on_lapse: OnLapse::Uncertain,
        attempts_max: 3,
        uncertain_retention: UNCERTAIN_RETENTION,
    }
}

/// A success with this payload.
pub fn done(text: &str) -> Recorded {
    Recorded::new(Class::Success, Format::FUNCTION, text.to_owned())
}

/// Claims the key `name`.
///
/// # Panics
/// When it is not acquired.
pub async fn acquire(store: &dyn Store, name: &str) -> Lease {
    match store.claim(&ask(name)).await {
        Ok(Claim::Acquired(lease)) => lease,
        other => panic!("{name} was not acquired: {other:?}"),
    }
}

/// Completes so many operations, each with an outcome of `outcome_bytes`, as the HTTP layer would. The outcomes do not
/// compress, which is the worst case for capacity planning.
///
/// # Panics
/// When one of them cannot be completed.
pub async fn fill(store: &dyn Store, records: u64, outcome_bytes: usize) {
    for number in 0..records {
        let key = Key::new(format!("order-{number}")).expect("a name is a key");
        let ask = ask_for(ScopedKey::new(Scope::new("POST /v1/orders").principal("customer"), &key));
        let Ok(Claim::Acquired(lease)) = store.claim(&ask).await else {
            panic!("order {number} was not acquired")
        };
        let bytes = std::iter::repeat_with(|| *Nonce::random().as_bytes()).flatten();
        let bytes: Vec<u8> = bytes.take(outcome_bytes).collect();
        let done = Recorded::new(Class::Success, Format::HTTP, bytes);
        store.complete(&lease, &done, RETENTION).await.expect("the owner may complete");
    }
}

/// Claims the key `name` and completes it with `text`.
///
/// # Panics
/// When it is not acquired, or the completion is not applied.
pub async fn finish(store: &dyn Store, name: &str, text: &str) -> Lease {
    let lease = acquire(store, name).await;
    let completed = store.complete(&lease, &done(text), RETENTION).await;
    assert!(matches!(completed, Ok(Fenced::Applied)), "{name} was not completed: {completed:?}");
    lease
}
