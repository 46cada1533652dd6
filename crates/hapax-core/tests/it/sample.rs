//! Test records: one of every status with fixed content, and a proptest strategy.

use std::time::Duration;

use bytes::Bytes;
use hapax_core::key::PrincipalHash;
use hapax_core::{
    Class, Fence, Fingerprint, Format, Nonce, Reason, Record, RecordId, Recorded, Scope, ScopedKey, Status,
    Timestamp,
};
use proptest::prelude::*;

/// The creation time of the fixed records; they changed a second later and expire a day after that.
pub(crate) const CREATED: Timestamp = Timestamp::from_millis(1_790_000_000_000);

pub(crate) fn nonce(number: u8) -> Nonce {
    Nonce::from_bytes([number; 16])
}

pub(crate) fn recorded(class: Class, payload: &'static str) -> Recorded {
    Recorded::new(class, Format::HTTP, payload).with_meta(Bytes::from_static(b"201"))
}

/// A record with fixed content in this status. Its hashes are arbitrary.
pub(crate) fn record(status: Status) -> Record {
    const ID: &str = "5978610a80bbc2161d9e5b99c3b56d4f4f544c7cf38c43f130ccaff314ff1913";
    const DIGEST: &str = "83efa106a124aa4d744d206f912f44e78499dc41323d8d6ae60663ee922ccd30";
    const PRINCIPAL: u128 = 0x40bd_b1c8_4bc4_584b_c4c3_1557_9303_8d44;
    let principal = PrincipalHash::from_bytes(PRINCIPAL.to_be_bytes());
    let [id, digest] = [ID, DIGEST].map(|hex| RecordId::parse(hex).unwrap());
    let updated_at = CREATED.after(Duration::from_secs(1));
    Record {
        key: ScopedKey { scope: Scope::from_parts("shop", Some(principal), "POST /v1/payments"), id },
        fingerprint: Fingerprint::from_parts(1, *digest.as_bytes()),
        fence: Fence { nonce: nonce(7), attempt: 2 },
        takeovers: 0,
        status,
        created_at: CREATED,
        updated_at,
        expires_at: updated_at.after(Duration::from_secs(86_400)),
    }
}

/// One record of every status, with its name.
pub(crate) fn one_of_each() -> [(&'static str, Record); 6] {
    let lease_until = CREATED.after(Duration::from_secs(31));
    [
        ("in_progress", record(Status::InProgress { lease_until })),
        ("completed", record(Status::Pinned { recorded: recorded(Class::Success, "{\"id\":1}") })),
        ("failed", record(Status::Pinned { recorded: recorded(Class::Error, "no such account") })),
        ("uncertain", record(Status::Uncertain { reason: Reason::Restarted })),
        ("released", record(Status::Released { answered: None })),
        (
            "released_answered",
            record(Status::Released { answered: Some(recorded(Class::Error, "try later")) }),
        ),
    ]
}

pub(crate) fn any_recorded() -> impl Strategy<Value = Recorded> {
    let class = prop_oneof![Just(Class::Success), Just(Class::Error)];
    let bytes = || prop::collection::vec(any::<u8>(), 0..200);
    (class, any::<u8>(), bytes(), bytes()).prop_map(|(class, format, meta, payload)| {
        Recorded::new(class, Format(format), payload).with_meta(meta)
    })
}

fn any_status() -> impl Strategy<Value = Status> {
    prop_oneof![
        any::<u64>().prop_map(|ms| Status::InProgress { lease_until: Timestamp::from_millis(ms) }),
        any_recorded().prop_map(|recorded| Status::Pinned { recorded }),
        prop::sample::select(&Reason::ALL[..]).prop_map(|reason| Status::Uncertain { reason }),
        prop::option::of(any_recorded()).prop_map(|answered| Status::Released { answered }),
    ]
}

pub(crate) fn any_record() -> impl Strategy<Value = Record> {
    let scope = (".{0,20}", prop::option::of(any::<[u8; 16]>()), ".{0,40}");
    let fence = (any::<[u8; 16]>(), any::<u32>());
    let times = (any::<u64>(), any::<u64>(), any::<u64>());
    let fingerprint = (any::<u8>(), any::<[u8; 32]>());
    (any::<[u8; 32]>(), scope, fingerprint, fence, any_status(), times).prop_map(
        |(id, (namespace, principal, operation), (algorithm, digest), (nonce, attempt), status, times)| {
            Record {
                key: ScopedKey {
                    scope: Scope::from_parts(
                        &namespace,
                        principal.map(PrincipalHash::from_bytes),
                        &operation,
                    ),
                    id: RecordId::from_bytes(id),
                },
                fingerprint: Fingerprint::from_parts(algorithm, digest),
                fence: Fence { nonce: Nonce::from_bytes(nonce), attempt },
                takeovers: attempt / 2,
                status,
                created_at: Timestamp::from_millis(times.0),
                updated_at: Timestamp::from_millis(times.1),
                expires_at: Timestamp::from_millis(times.2),
            }
        },
    )
}
