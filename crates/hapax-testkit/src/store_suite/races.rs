//! Races: many concurrent tasks on one key, of which exactly one wins.
//!
//! Every round has its own key. `HAPAX_SUITE_RACE_ROUNDS` sets how many rounds a case plays.

use std::sync::Arc;

use hapax_core::{BoxFuture, Claim, ClaimRequest, Deleted, Fenced, Lease, Settled, State, Store, Verdict};
use tokio::sync::Barrier;

use super::script::*;
use crate::rig::Rig;

/// Contenders in every round: enough to keep both cores of a small machine busy.
const TASKS: usize = 8;

/// Default number of rounds of a case.
const ROUNDS: u32 = 40;

/// of many claims of one new key, one is acquired and the others are busy.
pub async fn one_claim_wins(rig: &impl Rig) {
    let store = rig.store();
    for round in 0..rounds() {
        let first = ask(rig, &format!("claims {round}"));
        let asks: Vec<ClaimRequest> = (0..TASKS).map(|_| retry(&first)).collect();
        let answers = race(asks.iter().map(|ask| claiming(&store, ask)).collect()).await;
        let winner = one_acquired(&answers);
        assert!(answers.iter().all(|answer| matches!(answer, Claim::Acquired(_) | Claim::Busy { .. })));
        assert_eq!(record(&*store, &first.key.id).await.fence, winner.fence);
    }
}

/// of many takeovers of one lapsed claim, one succeeds.
pub async fn one_takeover_wins(rig: &impl Rig) {
    let store = rig.store();
    for (first, _) in lapsed(rig, &*store, "takeovers").await {
        let asks: Vec<ClaimRequest> = (0..TASKS).map(|_| takeover(&first)).collect();
        let answers = race(asks.iter().map(|ask| claiming(&store, ask)).collect()).await;
        let winner = one_acquired(&answers);
        assert_eq!(winner.fence.attempt, 2);
        assert_eq!(record(&*store, &first.key.id).await.fence, winner.fence);
    }
}

/// D-04: a late owner completes, or another attempt takes over; never both.
pub async fn a_late_owner_or_a_takeover_wins(rig: &impl Rig) {
    let store = rig.store();
    for (first, lease) in lapsed(rig, &*store, "late owners").await {
        let asks: Vec<ClaimRequest> = (1..TASKS).map(|_| takeover(&first)).collect();
        let mut contenders: Vec<Contender<Answer>> =
            asks.iter().map(|ask| wrapped(claiming(&store, ask), Answer::Claim)).collect();
        contenders.push(wrapped(completing(rig, &store, &lease), Answer::Fenced));
        let (claims, writes) = split(race(contenders).await);
        match writes[..] {
            [Fenced::Applied] => {
                assert_eq!(acquired(&claims), 0, "an outcome is final: {claims:?}");
                assert_eq!(state(&*store, &first.key.id).await, Some(State::Completed));
            }
            [Fenced::Lost] => {
                assert_eq!(acquired(&claims), 1, "another attempt took over: {claims:?}");
                assert_eq!(state(&*store, &first.key.id).await, Some(State::InProgress));
            }
            _ => unreachable!("there is one owner"),
        }
    }
}

/// a late renewal keeps the claim, or another attempt takes over; never both.
pub async fn a_late_renewal_or_a_takeover_wins(rig: &impl Rig) {
    let store = rig.store();
    for (first, lease) in lapsed(rig, &*store, "late renewals").await {
        let asks: Vec<ClaimRequest> = (1..TASKS).map(|_| takeover(&first)).collect();
        let mut contenders: Vec<Contender<Answer>> =
            asks.iter().map(|ask| wrapped(claiming(&store, ask), Answer::Claim)).collect();
        let (to, owned) = (store.clone(), lease.clone());
        contenders
            .push(Box::pin(async move { Answer::Fenced(to.renew(&owned).await.expect("renew answers")) }));
        let (claims, writes) = split(race(contenders).await);
        let renewed = usize::from(writes == [Fenced::Applied]);
        assert_eq!(renewed + acquired(&claims), 1, "one holds the key: {writes:?} {claims:?}");
    }
}

/// D-01: of a concurrent completion and release by the same owner, one is applied.
pub async fn a_completion_or_a_release_wins(rig: &impl Rig) {
    let store = rig.store();
    for round in 0..rounds() {
        let first = ask(rig, &format!("endings {round}"));
        let lease = acquire(&*store, &first).await;
        let contenders = vec![releasing(&store, &lease), completing(rig, &store, &lease)];
        let answers = race(contenders).await;
        let expected = match answers[..] {
            [Fenced::Applied, Fenced::Lost] => State::Released,
            [Fenced::Lost, Fenced::Applied] => State::Completed,
            _ => panic!("one ending is applied, not {answers:?}"),
        };
        assert_eq!(state(&*store, &first.key.id).await, Some(expected));
    }
}

/// D-07: of many settlements of one attempt, one is applied.
pub async fn one_settlement_wins(rig: &impl Rig) {
    let store = rig.store();
    for (first, lease) in lapsed(rig, &*store, "settlements").await {
        let contenders = (0..TASKS)
            .map(|number| {
                let recorded = outcome(&format!("found by {number}"));
                let verdict = Verdict::Applied { recorded, retention: retention(rig) };
                settling(&store, &lease, verdict)
            })
            .collect();
        let answers = race(contenders).await;
        let applied: Vec<usize> = (0..TASKS).filter(|number| answers[*number] == Settled::Applied).collect();
        let [winner] = applied[..] else { panic!("one settlement is applied, not {answers:?}") };
        let kept = outcome(&format!("found by {winner}"));
        assert_eq!(record(&*store, &first.key.id).await.recorded(), Some(&kept));
    }
}

/// D-07: a late owner completes, or an operator settles; never both.
pub async fn a_late_owner_or_a_settlement_wins(rig: &impl Rig) {
    let store = rig.store();
    for (first, lease) in lapsed(rig, &*store, "settled owners").await {
        let contenders: Vec<Contender<Answer>> = vec![
            wrapped(settling(&store, &lease, Verdict::NotApplied), Answer::Settled),
            wrapped(completing(rig, &store, &lease), Answer::Fenced),
        ];
        let expected = match race(contenders).await[..] {
            [Answer::Settled(Settled::Applied), Answer::Fenced(Fenced::Lost)] => State::Released,
            [Answer::Settled(Settled::NotUncertain(State::Completed)), Answer::Fenced(Fenced::Applied)] => {
                State::Completed
            }
            ref both => panic!("one of them is applied, not {both:?}"),
        };
        assert_eq!(state(&*store, &first.key.id).await, Some(expected));
    }
}

/// A sweep concurrent with claims of an expired key removes the old record or nothing, never the new one.
pub async fn a_sweep_spares_a_new_claim(rig: &impl Rig) {
    let store = rig.store();
    let mut asks = Vec::new();
    for round in 0..rounds() {
        let first = ask(rig, &format!("sweeps {round}"));
        let lease = acquire(&*store, &first).await;
        complete(rig, &*store, &lease, &outcome("old")).await;
        asks.push(first);
    }
    rig.advance(retention(rig)).await;
    for first in asks {
        let again: Vec<ClaimRequest> = (0..TASKS / 2).map(|_| retry(&first)).collect();
        let mut contenders: Vec<Contender<Option<Claim>>> = Vec::new();
        for ask in &again {
            let claiming = claiming(&store, ask);
            contenders.push(Box::pin(async move { Some(claiming.await) }));
            let store = store.clone();
            contenders.push(Box::pin(async move {
                store.sweep(1000).await.expect("sweep answers");
                None
            }));
        }
        let answers: Vec<Claim> = race(contenders).await.into_iter().flatten().collect();
        let winner = one_acquired(&answers);
        assert_eq!(record(&*store, &first.key.id).await.fence, winner.fence, "the claim is still there");
    }
}

/// D-07: a deletion concurrent with claims removes the record that was read or nothing, never a new claim.
pub async fn a_deletion_spares_a_new_claim(rig: &impl Rig) {
    let store = rig.store();
    for round in 0..rounds() {
        let first = ask(rig, &format!("deletions {round}"));
        let lease = acquire(&*store, &first).await;
        complete(rig, &*store, &lease, &outcome("old")).await;
        let again: Vec<ClaimRequest> = (0..TASKS / 2).map(|_| retry(&first)).collect();
        let mut contenders: Vec<Contender<Answer>> = Vec::new();
        for ask in &again {
            contenders.push(wrapped(claiming(&store, ask), Answer::Claim));
            let (store, id, nonce) = (store.clone(), first.key.id, lease.fence.nonce);
            contenders.push(Box::pin(async move {
                Answer::Deleted(store.delete(&id, nonce).await.expect("delete answers"))
            }));
        }
        let answers = race(contenders).await;
        let deleted = answers.iter().filter(|answer| matches!(answer, Answer::Deleted(Deleted::Applied)));
        assert_eq!(deleted.count(), 1, "{answers:?}");
        let (claims, _) = split(answers);
        assert!(acquired(&claims) <= 1, "{claims:?}");
        for claim in claims {
            if let Claim::Acquired(lease) = claim {
                assert_eq!(record(&*store, &first.key.id).await.fence, lease.fence);
            }
        }
    }
}

/// Concurrent operations on different keys lose no record.
pub async fn concurrent_operations_on_many_keys_are_all_kept(rig: &impl Rig) {
    let store = rig.store();
    let asks: Vec<ClaimRequest> = (0..TASKS * 8).map(|number| ask(rig, &format!("crowd {number}"))).collect();
    let answers = race(asks.iter().map(|ask| claiming(&store, ask)).collect()).await;
    assert_eq!(acquired(&answers), asks.len());
    let leases: Vec<Lease> = asks.iter().map(|ask| lease_of(ask, 1)).collect();
    let writes = race(leases.iter().map(|lease| completing(rig, &store, lease)).collect()).await;
    assert!(writes.iter().all(|answer| *answer == Fenced::Applied));
    assert_eq!(store.stats().await.expect("stats answers").completed, asks.len() as u64);
}

#[derive(PartialEq, Debug)]
enum Answer {
    Claim(Claim),
    Fenced(Fenced),
    Settled(Settled),
    Deleted(Deleted),
}

type Contender<T> = BoxFuture<'static, T>;

/// Starts all contenders at the same moment and returns their answers in the order given.
async fn race<T: Send + 'static>(contenders: Vec<Contender<T>>) -> Vec<T> {
    let start = Arc::new(Barrier::new(contenders.len()));
    let tasks: Vec<_> = contenders
        .into_iter()
        .map(|contender| {
            let start = start.clone();
            tokio::spawn(async move {
                start.wait().await;
                contender.await
            })
        })
        .collect();
    let mut answers = Vec::with_capacity(tasks.len());
    for task in tasks {
        answers.push(task.await.expect("the contender does not panic"));
    }
    answers
}

fn claiming(store: &Arc<dyn Store>, ask: &ClaimRequest) -> Contender<Claim> {
    let (store, ask) = (store.clone(), ask.clone());
    Box::pin(async move { store.claim(&ask).await.expect("claim answers") })
}

fn completing(rig: &impl Rig, store: &Arc<dyn Store>, lease: &Lease) -> Contender<Fenced> {
    let (store, lease, retention) = (store.clone(), lease.clone(), retention(rig));
    Box::pin(
        async move { store.complete(&lease, &outcome("done"), retention).await.expect("complete answers") },
    )
}

fn releasing(store: &Arc<dyn Store>, lease: &Lease) -> Contender<Fenced> {
    let (store, lease) = (store.clone(), lease.clone());
    Box::pin(async move { store.release(&lease, None).await.expect("release answers") })
}

fn settling(store: &Arc<dyn Store>, lease: &Lease, verdict: Verdict) -> Contender<Settled> {
    let (store, id, settlement) = (store.clone(), lease.id, settlement(lease.fence.nonce, verdict));
    Box::pin(async move { store.settle(&id, &settlement).await.expect("settle answers") })
}

fn wrapped<T: Send + 'static>(contender: Contender<T>, wrap: fn(T) -> Answer) -> Contender<Answer> {
    Box::pin(async move { wrap(contender.await) })
}

/// One lapsed claim per round.
async fn lapsed(rig: &impl Rig, store: &dyn Store, name: &str) -> Vec<(ClaimRequest, Lease)> {
    let mut claimed = Vec::new();
    for round in 0..rounds() {
        let ask = ask(rig, &format!("{name} {round}"));
        let lease = acquire(store, &ask).await;
        claimed.push((ask, lease));
    }
    rig.advance(rig.facts().lease).await;
    claimed
}

fn rounds() -> u32 {
    from_env("HAPAX_SUITE_RACE_ROUNDS", ROUNDS)
}

fn acquired(answers: &[Claim]) -> usize {
    answers.iter().filter(|answer| matches!(answer, Claim::Acquired(_))).count()
}

#[track_caller]
fn one_acquired(answers: &[Claim]) -> &Lease {
    assert_eq!(acquired(answers), 1, "one claim is acquired: {answers:?}");
    answers
        .iter()
        .find_map(|answer| match answer {
            Claim::Acquired(lease) => Some(lease),
            _ => None,
        })
        .expect("there is one")
}

fn split(answers: Vec<Answer>) -> (Vec<Claim>, Vec<Fenced>) {
    let (mut claims, mut writes) = (Vec::new(), Vec::new());
    for answer in answers {
        match answer {
            Answer::Claim(claim) => claims.push(claim),
            Answer::Fenced(fenced) => writes.push(fenced),
            Answer::Settled(_) | Answer::Deleted(_) => {}
        }
    }
    (claims, writes)
}
