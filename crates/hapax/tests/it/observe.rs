//! Metrics, logs and spans: one outcome for every request, one span for every execution, and never a key.

use hapax::observe;
use hapax_testkit::{Fault, Op, Plan};
use metrics_util::debugging::{DebugValue, Snapshotter};

use crate::watched::watch;
use crate::world::World;

const CANARY: &str = "canary-9c41";

/// Runs `scene` in simulated time and captures its logs and metrics.
fn watched<F: Future<Output = ()>>(scene: impl FnOnce() -> F) -> (String, Snapshotter) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let ((), logs, counted) = watch(|| runtime.block_on(async { scene().await }));
    (logs, counted)
}

/// The counted outcomes of requests, as `outcome=count`, sorted.
fn outcomes(snapshotter: &Snapshotter) -> Vec<String> {
    let mut counted: Vec<String> = snapshotter
        .snapshot()
        .into_vec()
        .into_iter()
        .filter(|(key, ..)| key.key().name() == observe::REQUESTS)
        .map(|(key, _, _, value)| {
            let label =
                |name: &str| key.key().labels().find(|label| label.key() == name).unwrap().value().to_owned();
            assert_eq!((label("surface"), label("route")), ("function".to_owned(), "charge".to_owned()));
            let DebugValue::Counter(count) = value else { panic!("requests are counted") };
            format!("{}={count}", label("outcome"))
        })
        .collect();
    counted.sort();
    counted
}

#[test]
fn every_request_is_counted_with_one_outcome() {
    let (_, snapshotter) = watched(|| async {
        let world = World::new();
        world.charge("k").await.unwrap();
        world.charge("k").await.unwrap();
        world.charge("k").await.unwrap();
        let _ = world.charge("").await;
        let _ =
            world.hapax.once("charge", "k").input("another").run(|_cx| async { Ok::<u32, String>(0) }).await;
        let _ = world.hapax.once("charge", "k2").run(|_cx| async { Err::<u32, _>("no".to_owned()) }).await;
        let slow = world.start_slow("k3", |policy| policy).await;
        let _ = world.charge("k3").await;
        slow.answer().await.unwrap();
        world
            .faulty
            .set_plan(Plan::new().always(Op::Claim, Fault::ErrorBefore(hapax::core::StoreErrorKind::Full)));
        let _ = world.charge("k4").await;
    });
    let expected =
        ["failed=1", "in_progress=1", "mismatch=1", "ran=2", "refused=1", "replayed=2", "store_error=1"];
    assert_eq!(outcomes(&snapshotter), expected);
}

#[test]
fn logs_and_metrics_show_no_key_principal_input_or_result() {
    let (logs, snapshotter) = watched(|| async {
        let world = World::new();
        let scope = || hapax::Scope::new("charge").principal(CANARY);
        let once = || world.hapax.once(scope(), CANARY).input(CANARY);
        once().run(|_cx| async { Ok::<_, String>(CANARY.to_owned()) }).await.unwrap();
        once().run(|_cx| async { Ok::<_, String>(CANARY.to_owned()) }).await.unwrap();
        // A handler that panics with a secret in its message, and a store that fails, are both reported.
        let panics = world.hapax.once(scope(), "k").run(|cx| async move {
            assert!(cx.attempt() > 1, "not in our logs");
            Ok::<u32, String>(0)
        });
        assert!(panics.await.is_err());
        world.faulty.set_plan(Plan::new().always(Op::Complete, Fault::AnswerLost));
        let done = world
            .hapax
            .once(scope(), "k2")
            .input(CANARY)
            .run(|_cx| async { Ok::<_, String>(CANARY.to_owned()) });
        assert!(!done.await.unwrap().recorded);
    });
    assert!(logs.contains("hapax.execution") && logs.contains("operation=\"charge\""), "{logs}");
    assert!(logs.contains("attempt=1"), "{logs}");
    assert!(logs.contains("panicked") && logs.contains("failed to record"), "{logs}");
    assert!(!logs.contains(CANARY) && !logs.contains("not in our logs"), "{logs}");
    for (key, ..) in snapshotter.snapshot().into_vec() {
        assert!(!format!("{key:?}").contains(CANARY), "{key:?}");
    }
}

#[test]
fn gauges_return_to_zero_and_store_errors_are_counted_by_kind() {
    let (_, snapshotter) = watched(|| async {
        let world = World::new();
        world.faulty.set_plan(Plan::new().at_nth(Op::Claim, 1, Fault::AnswerLost));
        world.charge("k").await.unwrap();
    });
    let mut seen = Vec::new();
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        match (key.key().name(), value) {
            (observe::IN_PROGRESS, DebugValue::Gauge(value)) => seen.push(format!("in progress {value}")),
            (observe::STORE_ERRORS, DebugValue::Counter(count)) => {
                let labels: Vec<_> = key.key().labels().map(|label| label.value().to_owned()).collect();
                seen.push(format!("{} {count}", labels.join(" ")));
            }
            (observe::CLAIM_SECONDS, DebugValue::Histogram(values)) => {
                seen.push(format!("{} claim", values.len()))
            }
            _ => {}
        }
    }
    seen.sort();
    assert_eq!(seen, ["1 claim", "claim unknown 1", "in progress 0"]);
}

#[test]
fn a_lost_lease_is_counted_once() {
    let (_, snapshotter) = watched(|| async {
        let world = World::new();
        let slow = world.start_slow("k", |policy| policy).await;
        world.faulty.set_plan(
            Plan::new().always(Op::Renew, Fault::ErrorBefore(hapax::core::StoreErrorKind::Unavailable)),
        );
        tokio::time::sleep(2 * crate::world::LEASE).await;
        let person = world.second();
        assert!(person.charge("k").await.is_err());
        person.settle("k", hapax::core::Verdict::NotApplied).await;
        world.faulty.set_plan(Plan::new());
        tokio::time::sleep(crate::world::LEASE).await;
        assert!(slow.answer().await.is_err());
    });
    let lost: Vec<DebugValue> = snapshotter
        .snapshot()
        .into_vec()
        .into_iter()
        .filter(|(key, ..)| key.key().name() == observe::LEASE_LOST)
        .map(|(_, _, _, value)| value)
        .collect();
    assert_eq!(lost, [DebugValue::Counter(1)]);
}
