//! A lapse is decided by what a process has seen on its own clock, and by no other clock.

use std::time::Duration;

use hapax_core::{
    Claim, ClaimRequest, Clock, Deleted, Fenced, ManualClock, OnLapse, Reason, Settled, Settlement, State,
    Store, Timestamp, Verdict,
};
use hapax_testkit::servers::DynamoDbServer;

use crate::fixture::{LEASE, acquire, ask, clock, connect, options};

fn takeover(name: &str) -> ClaimRequest {
    ClaimRequest { on_lapse: OnLapse::Rerun, ..ask(name) }
}

#[tokio::test]
async fn a_takeover_observes_a_whole_lease_whatever_the_clocks_show() {
    let server = DynamoDbServer::start();
    connect(&server, "lapse").await;
    let now = clock().now();
    let day = Duration::from_secs(24 * 3600);
    let clocks = [
        ("the owner's is a day ahead", now.after(day), now),
        (
            "the owner's is a day behind",
            Timestamp::from_millis(now.as_millis() - day.as_millis() as u64),
            now,
        ),
    ];
    for (name, owners, takers) in clocks {
        let (owners, takers) = (ManualClock::at(owners), ManualClock::at(takers));
        let owner = options(&server, "lapse").clock(owners.clone()).connect().await.unwrap();
        let taker = options(&server, "lapse").clock(takers.clone()).connect().await.unwrap();
        let lease = acquire(&owner, name).await;
        owners.advance(LEASE * 10);

        // Long expired for its owner, it is live for a process that sees it for the first time.
        assert_eq!(taker.claim(&takeover(name)).await.unwrap(), Claim::Busy { lease_left: LEASE }, "{name}");
        takers.advance(LEASE / 2);
        assert_eq!(
            taker.claim(&takeover(name)).await.unwrap(),
            Claim::Busy { lease_left: LEASE / 2 },
            "{name}"
        );

        // A renewal restarts the observation.
        assert_eq!(owner.renew(&lease).await.unwrap(), Fenced::Applied);
        takers.advance(LEASE / 2);
        assert_eq!(taker.claim(&takeover(name)).await.unwrap(), Claim::Busy { lease_left: LEASE }, "{name}");
        takers.advance(LEASE);
        let Claim::Acquired(second) = taker.claim(&takeover(name)).await.unwrap() else {
            panic!("{name}: it lapsed")
        };
        assert_eq!(second.fence.attempt, 2);
        assert_eq!(owner.renew(&lease).await.unwrap(), Fenced::Lost, "{name}");
    }
}

#[tokio::test]
async fn a_process_observes_an_unseen_claim_before_it_settles_or_deletes() {
    // Leases of a real clock, since the observation takes real time.
    let short = Duration::from_millis(300);
    let server = DynamoDbServer::start();
    let owner = connect(&server, "settled").await;
    for name in ["settled", "deleted"] {
        let claim = ClaimRequest { lease: short, ..ask(name) };
        let Claim::Acquired(lease) = owner.claim(&claim).await.unwrap() else { panic!("it is fresh") };
        let (id, nonce) = (lease.id, lease.fence.nonce);
        let stranger = options(&server, "settled").connect().await.unwrap();
        // A process that has seen it for a lease marks it uncertain; until then its own deadline is shown.
        while !matches!(
            stranger.get(&id).await.unwrap(),
            hapax_core::Lookup::Found { record, now } if record.state_at(now) == State::Uncertain
        ) {}
        let stranger = options(&server, "settled").connect().await.unwrap();
        if name == "settled" {
            let settlement = Settlement::new(nonce, Verdict::NotApplied);
            assert_eq!(stranger.settle(&id, &settlement).await.unwrap(), Settled::Applied);
        } else {
            assert_eq!(stranger.delete(&id, nonce).await.unwrap(), Deleted::Applied);
        }
        assert_eq!(owner.renew(&lease).await.unwrap(), Fenced::Lost, "{name}");
    }
    // A live one is reported at once.
    let lease = acquire(&owner, "at work").await;
    let stranger = options(&server, "settled").connect().await.unwrap();
    assert_eq!(stranger.delete(&lease.id, lease.fence.nonce).await.unwrap(), Deleted::InProgress);
    owner.abandon(&lease, Reason::Declared).await.unwrap();
    assert_eq!(stranger.delete(&lease.id, lease.fence.nonce).await.unwrap(), Deleted::Applied);
}
