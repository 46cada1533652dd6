//! The behaviour of `once()` for its callers.

use std::collections::HashMap;
use std::time::Duration;

use hapax::core::{KeyError, Lookup, Reason, State};
use hapax::{ExpiredKeys, Fail, Hapax, MemoryStore, OnceError, Scope, StoredError};
use serde_json::json;

use crate::world::{ChargeResult, World};

fn run(hapax: &Hapax, key: &str) -> impl Future<Output = ChargeResult> {
    hapax.once("charge", key).run(|cx| async move { Ok::<_, String>(cx.attempt()) })
}

#[tokio::test(start_paused = true)]
async fn the_first_call_runs_and_the_second_is_replayed() {
    let world = World::new();
    let first = world.charge("k").await.unwrap();
    assert_eq!((first.value, first.replayed, first.recorded), (1, false, true));
    let second = world.charge("k").await.unwrap();
    assert_eq!((second.value, second.replayed, second.recorded), (1, true, true));
    assert_eq!(world.effects.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn keys_scopes_and_principals_separate_operations() {
    let hapax = Hapax::new(MemoryStore::new());
    let count = async |scope: Scope, key: &str| {
        hapax.once(scope, key).run(|_cx| async { Ok::<_, String>(()) }).await.unwrap().replayed
    };
    assert!(!count(Scope::new("a"), "k").await);
    assert!(!count(Scope::new("a"), "other").await);
    assert!(!count(Scope::new("b"), "k").await);
    assert!(!count(Scope::new("a").principal("ann"), "k").await);
    assert!(!count(Scope::new("a").principal("bob"), "k").await);
    assert!(!count(Scope::new("a").in_namespace("test"), "k").await);
    assert!(count(Scope::new("a").principal("ann"), "k").await);
}

#[tokio::test(start_paused = true)]
async fn another_input_with_the_same_key_is_refused_and_changes_nothing() {
    let hapax = Hapax::new(MemoryStore::new());
    let ask = |amount: u32| {
        hapax.once("charge", "k").input(&json!({ "amount": amount })).run(|_cx| async { Ok::<_, String>(7) })
    };
    assert_eq!(ask(5).await.unwrap().value, 7);
    assert!(matches!(ask(6).await, Err(OnceError::Mismatch)));
    assert!(ask(5).await.unwrap().replayed);
}

#[tokio::test(start_paused = true)]
async fn a_mismatch_is_reported_before_in_progress() {
    let world = World::new();
    let slow = world.start_slow("k", |policy| policy).await;
    let other =
        world.hapax.once("charge", "k").input("another").run(|_cx| async { Ok::<u32, String>(0) }).await;
    assert!(matches!(other, Err(OnceError::Mismatch)));
    slow.answer().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_order_of_a_map_does_not_count() {
    let hapax = Hapax::new(MemoryStore::new());
    for round in 0..20 {
        let input: HashMap<String, u32> = (0..20).map(|n| (format!("member {n}"), n)).collect();
        let done =
            hapax.once("charge", "k").input(&input).run(|_cx| async { Ok::<_, String>(()) }).await.unwrap();
        assert_eq!(done.replayed, round > 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_plain_error_releases_the_key_and_the_retry_runs_as_the_next_attempt() {
    let hapax = Hapax::new(MemoryStore::new());
    let failed = hapax.once("charge", "k").run(|_cx| async { Err::<u32, _>("no route".to_owned()) }).await;
    assert!(matches!(failed, Err(OnceError::Failed(text)) if text == "no route"));
    let done = run(&hapax, "k").await.unwrap();
    assert_eq!((done.value, done.replayed), (2, false));
}

#[tokio::test(start_paused = true)]
async fn a_released_key_may_be_used_for_a_corrected_request() {
    let hapax = Hapax::new(MemoryStore::new());
    let once = |input: &str| hapax.once("charge", "k").input(input);
    let failed = once("wrong").run(|_cx| async { Err::<u32, _>("mend it".to_owned()) }).await;
    assert!(matches!(failed, Err(OnceError::Failed(_))));
    assert_eq!(once("right").run(|_cx| async { Ok::<_, String>(1) }).await.unwrap().value, 1);
}

#[tokio::test(start_paused = true)]
async fn a_final_error_is_pinned_with_its_data() {
    let hapax = Hapax::new(MemoryStore::new());
    let ask = || {
        hapax.once("charge", "k").run(|_cx| async {
            Err::<u32, _>(Fail::permanent_with("card declined".to_owned(), json!({ "code": 51 })))
        })
    };
    assert!(matches!(ask().await, Err(OnceError::Failed(text)) if text == "card declined"));
    let Err(OnceError::PreviouslyFailed(stored)) = ask().await else { panic!("the error is replayed") };
    assert_eq!(stored, StoredError { message: "card declined".into(), data: Some(json!({ "code": 51 })) });
    let Lookup::Found { record, .. } = hapax.get("charge", "k").await.unwrap() else {
        panic!("the record exists")
    };
    assert_eq!(record.state(), State::Failed);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_error_makes_the_record_uncertain() {
    let world = World::new();
    let effects = world.effects.clone();
    let lost = world.hapax.once("charge", "k").run(move |_cx| async move {
        effects.happen();
        Err::<u32, _>(Fail::Unknown("connection reset".to_owned()))
    });
    assert!(matches!(lost.await, Err(OnceError::Failed(_))));
    assert!(matches!(world.charge("k").await, Err(OnceError::Uncertain { reason: Reason::Declared, .. })));
    assert_eq!(world.effects.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_panic_makes_the_record_uncertain_and_nothing_runs_again() {
    let world = World::new();
    let effects = world.effects.clone();
    let panicked = world.hapax.once("charge", "k").run(move |_cx| async move {
        effects.happen();
        if true {
            panic!("a defect in the handler")
        }
        Ok::<u32, String>(0)
    });
    assert!(matches!(panicked.await, Err(OnceError::Uncertain { reason: Reason::Panicked, .. })));
    assert!(matches!(world.charge("k").await, Err(OnceError::Uncertain { reason: Reason::Panicked, .. })));
    assert_eq!(world.effects.count(), 1);
    assert_eq!(world.state("k").await, Some(State::Uncertain));
}

#[tokio::test(start_paused = true)]
async fn a_panic_before_the_first_await_is_caught() {
    let hapax = Hapax::new(MemoryStore::new());
    let panicked = hapax.once("charge", "k").run(|cx| {
        assert!(cx.attempt() > 1, "a defect before the future is made");
        async { Ok::<u32, String>(0) }
    });
    assert!(matches!(panicked.await, Err(OnceError::Uncertain { reason: Reason::Panicked, .. })));
}

#[tokio::test(start_paused = true)]
async fn an_invalid_key_is_refused_and_nothing_runs() {
    let world = World::new();
    let long = "x".repeat(256);
    for wrong in ["", "   ", "tab\tinside", "ключ", long.as_str()] {
        assert!(matches!(world.charge(wrong).await, Err(OnceError::Key(_))), "{wrong:?}");
    }
    assert!(matches!(world.charge("").await, Err(OnceError::Key(KeyError::Empty))));
    assert_eq!((world.effects.count(), world.faulty.calls()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn an_input_without_a_json_form_is_refused_and_nothing_runs() {
    let world = World::new();
    let input = HashMap::from([((1, 2), 3)]);
    let refused =
        world.hapax.once("charge", "k").input(&input).run(|_cx| async { Ok::<u32, String>(0) }).await;
    assert!(matches!(refused, Err(OnceError::Input(_))));
    assert_eq!(world.faulty.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_result_without_a_json_form_reaches_its_caller_and_never_runs_again() {
    let hapax = Hapax::new(MemoryStore::new());
    let ask = || hapax.once("charge", "k").run(|_cx| async { Ok::<_, String>(HashMap::from([((1, 2), 3)])) });
    // A map with such keys cannot be written or read as JSON.
    assert_eq!(ask().await.unwrap().value[&(1, 2)], 3);
    assert!(matches!(ask().await, Err(OnceError::ResultUnavailable { source: None })));
}

#[tokio::test(start_paused = true)]
async fn an_outcome_over_the_limit_reaches_its_caller_and_never_runs_again() {
    let world = World::new();
    let ask = || {
        let effects = world.effects.clone();
        let policy = hapax::Policy::default().outcome_bytes_max(100);
        world.hapax.once("charge", "k").policy(policy).run(move |_cx| async move {
            effects.happen();
            Ok::<_, String>("x".repeat(101))
        })
    };
    assert_eq!(ask().await.unwrap().value.len(), 101);
    assert!(matches!(ask().await, Err(OnceError::ResultUnavailable { source: None })));
    assert_eq!(world.effects.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_result_of_another_type_is_not_run_again() {
    let hapax = Hapax::new(MemoryStore::new());
    hapax.once("charge", "k").run(|_cx| async { Ok::<_, String>("text".to_owned()) }).await.unwrap();
    let as_number = run(&hapax, "k").await;
    assert!(matches!(as_number, Err(OnceError::ResultUnavailable { source: Some(_) })));
}

#[tokio::test(start_paused = true)]
async fn effect_keys_depend_on_step_and_operation_but_not_on_the_attempt() {
    let hapax = Hapax::new(MemoryStore::new());
    let keys = async |key: &str| {
        let run = hapax.once("charge", key).run(|cx| async move {
            Err::<u32, _>(format!("{} {}", cx.effect_key("card").as_str(), cx.effect_key("mail").as_str()))
        });
        let Err(OnceError::Failed(keys)) = run.await else { panic!("the first attempt fails") };
        keys.split_once(' ').map(|(card, mail)| (card.to_owned(), mail.to_owned())).unwrap()
    };
    let first = keys("k").await;
    assert_eq!(keys("k").await, first, "the second attempt derives the same keys");
    assert_ne!(first.0, first.1);
    assert_ne!(keys("other").await.0, first.0);
    assert_eq!(first.0.len(), 32);
}

#[tokio::test(start_paused = true)]
async fn after_its_retention_a_key_is_fresh() {
    let world = World::new();
    let day = Duration::from_secs(86_400);
    world.charge_with("k", |policy| policy.retention(day)).await.unwrap();
    tokio::time::advance(day - Duration::from_secs(1)).await;
    assert!(world.charge("k").await.unwrap().replayed);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(!world.charge("k").await.unwrap().replayed);
    assert_eq!(world.effects.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_key_is_fresh_and_a_running_one_is_not_deleted() {
    use hapax::core::Deleted;
    let world = World::new();
    let slow = world.start_slow("k", |policy| policy).await;
    assert_eq!(world.delete("k").await, Deleted::InProgress);
    slow.answer().await.unwrap();
    assert_eq!(world.delete("k").await, Deleted::Applied);
    assert_eq!(world.delete("k").await, Deleted::Absent);
    assert_eq!(world.charge("k").await.unwrap().value, 2);
}

#[tokio::test(start_paused = true)]
async fn a_key_older_than_the_retention_is_refused_if_configured() {
    // From February 2022.
    const OLD: &str = "017F22E2-79B0-7CC3-98C4-DC0C0C07398F";
    let world = World::new();
    let strict = |policy: hapax::Policy| policy.expired_keys(ExpiredKeys::Refuse);
    assert!(matches!(world.charge_with(OLD, strict).await, Err(OnceError::Expired)));
    assert_eq!(world.effects.count(), 0);
    let fresh = hapax::Key::random();
    assert_eq!(world.charge_with(fresh.as_str(), strict).await.unwrap().value, 1);
    assert_eq!(world.charge_with("tells nothing", strict).await.unwrap().value, 2);
    // While its record exists, an old key is replayed.
    assert_eq!(world.charge(OLD).await.unwrap().value, 3, "the default policy runs it");
    assert!(world.charge_with(OLD, strict).await.unwrap().replayed);
    tokio::time::advance(Duration::from_secs(25 * 3600)).await;
    assert!(matches!(world.charge_with(OLD, strict).await, Err(OnceError::Expired)));
}

#[tokio::test(start_paused = true)]
async fn an_old_key_whose_record_expires_during_the_claim_is_refused() {
    use hapax::core::StoreErrorKind;
    use hapax_testkit::{Fault, Op, Plan};
    const OLD: &str = "017F22E2-79B0-7CC3-98C4-DC0C0C07398F";
    let world = World::new();
    let hour = Duration::from_secs(3600);
    world.charge_with(OLD, |policy| policy.retention(hour)).await.unwrap();
    tokio::time::advance(hour - Duration::from_millis(5)).await;
    // The record exists at the lookup, and has expired when the claim is repeated.
    world.faulty.set_plan(Plan::new().at_nth(Op::Claim, 1, Fault::ErrorBefore(StoreErrorKind::Unknown)));
    let late =
        world.charge_with(OLD, |policy| policy.retention(hour).expired_keys(ExpiredKeys::Refuse)).await;
    assert!(matches!(late, Err(OnceError::Expired)));
    assert_eq!(world.effects.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_outcome_of_another_surface_is_not_a_function_result() {
    use hapax::core::{Class, Format, Recorded, Settled, Verdict};
    for (format, class) in
        [(Format::HTTP, Class::Success), (Format::HTTP, Class::Error), (Format(200), Class::Error)]
    {
        let world = World::new();
        let lost =
            world.hapax.once("charge", "k").run(|_cx| async { Err::<u32, _>(Fail::Unknown("?".to_owned())) });
        assert!(lost.await.is_err());
        let recorded = Recorded::new(class, format, "7");
        let verdict = Verdict::Applied { recorded, retention: Duration::from_secs(60) };
        assert_eq!(world.settle("k", verdict).await, Settled::Applied);
        assert!(matches!(world.charge("k").await, Err(OnceError::ResultUnavailable { source: None })));
    }
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_record_is_never_treated_as_absent() {
    use hapax::core::{Key, ScopedKey};
    use hapax_testkit::{ReferenceStore, TokioClock};
    let store = std::sync::Arc::new(ReferenceStore::new(TokioClock::new()));
    let world = World::over(store.clone(), |builder| builder);
    world.charge("k").await.unwrap();
    let id = ScopedKey::new(Scope::new("charge"), &Key::new("k").unwrap()).id;
    assert!(store.damage(&id));
    assert!(matches!(world.charge("k").await, Err(OnceError::Unreadable { .. })));
    assert!(matches!(world.hapax.get("charge", "k").await, Ok(Lookup::Unreadable { .. })));
    assert_eq!(world.effects.count(), 1);
}
