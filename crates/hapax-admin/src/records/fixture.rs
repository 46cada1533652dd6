//! Claims for tests.

use std::time::Duration;

use hapax_core::{Claim, ClaimRequest, Fingerprint, Key, Lease, Nonce, OnLapse, Scope, ScopedKey, Store};

pub(crate) const LEASE: Duration = Duration::from_secs(30);

/// Claims `key`.
pub(crate) async fn claim(store: &dyn Store, key: &str) -> Lease {
    let ask = ClaimRequest {
        key: ScopedKey::new(Scope::new("charge"), &Key::new(key).unwrap()),
        fingerprint: Fingerprint::from_parts(1, [7; 32]),
        nonce: Nonce::random(),
        lease: LEASE,
        on_lapse: OnLapse::Uncertain,
        attempts_max: 5,
        uncertain_retention: Duration::from_secs(30 * 86_400),
    };
    match store.claim(&ask).await.unwrap() {
        Claim::Acquired(lease) => lease,
        other => panic!("{other:?}"),
    }
}
