//! The rules about effects and outcomes of one key: one effect, explained repetitions, one recorded outcome.

use hapax_core::transition::{Answer, Command};
use hapax_core::{
    Claim, ClaimRequest, Deleted, Fenced, Nonce, OnLapse, RecordId, Recorded, Settled, Timestamp, Verdict,
};

use super::timeline::{Rule, Violation};
use super::{Call, Effect, GivenOutcome, KeyEvents, Moment, Request};

/// Checks the effects and outcomes of one key.
pub(super) fn check(id: RecordId, events: &KeyEvents<'_>) -> Result<(), Box<Violation>> {
    let violation = |rule: Rule| {
        let calls = events.calls.iter().copied().filter(|call| call.request != Request::Sweep);
        Box::new(
            Violation::new(rule, id, calls, None)
                .with_effects(events.effects.iter().copied())
                .with_outcomes(events.outcomes.iter().copied()),
        )
    };
    let mut claimed = Vec::with_capacity(events.effects.len());
    for effect in &events.effects {
        let Some(claim) = claim_of(events, effect) else {
            return Err(violation(Rule::EffectWithoutClaim));
        };
        if events.calls.iter().any(|call| ended(call, effect)) {
            return Err(violation(Rule::EffectAfterEnd));
        }
        claimed.push((*effect, claim));
    }
    // In the order of the claims: an owner that was paused may act after its successor.
    claimed.sort_by_key(|(_, claim)| claim.acquired.order);
    for two in claimed.windows(2) {
        let [(first, _), (second, _)] = two else { continue };
        if first.fence.nonce == second.fence.nonce {
            return Err(violation(Rule::EffectTwiceUnderOneFence));
        }
        if !explained(events, &two[0], &two[1]) {
            return Err(violation(Rule::SecondEffect));
        }
    }
    for (at, outcome) in events.outcomes.iter().enumerate() {
        if !events.calls.iter().any(|call| pins(call).is_some_and(|pin| *pin.recorded == outcome.recorded)) {
            return Err(violation(Rule::OutcomeNeverRecorded));
        }
        if let Some(next) = events.outcomes.get(at + 1)
            && next.recorded != outcome.recorded
            && !outlived(events, outcome, next)
        {
            return Err(violation(Rule::TwoOutcomes));
        }
    }
    Ok(())
}

/// A claim that was granted.
struct Acquired<'a> {
    ask: &'a ClaimRequest,
    invoked: Moment,
    acquired: Moment,
}

/// The claim under which an effect happened: granted, and known to be before the effect.
fn claim_of<'a>(events: &KeyEvents<'a>, effect: &Effect) -> Option<Acquired<'a>> {
    events.calls.iter().find_map(|call| {
        let (Command::Claim(ask), Answer::Claim(Claim::Acquired(lease))) = (call.command()?, call.answer()?)
        else {
            return None;
        };
        let (acquired, _) = call.end.as_ref()?;
        (lease.fence == effect.fence && acquired.order < effect.when.order).then_some(Acquired {
            ask,
            invoked: call.invoked,
            acquired: *acquired,
        })
    })
}

/// Whether something before the second claim took the key from the first effect's attempt, or ended its record.
fn explained(
    events: &KeyEvents<'_>,
    first: &(&Effect, Acquired<'_>),
    second: &(&Effect, Acquired<'_>),
) -> bool {
    let ((effect, claim), (_, takeover)) = (first, second);
    let before: Vec<&Call> =
        events.calls.iter().copied().filter(|call| call.invoked.order < takeover.acquired.order).collect();
    let taken_over = before.iter().any(|call| took_over(call, effect.fence.attempt));
    let given_away = before.iter().any(|call| freed(call, effect.fence.nonce));
    let outlived = before.iter().filter_map(|call| pins(call)).any(|pin| pin.is_over(takeover.acquired.at));
    let dropped = before.iter().any(|call| call.request == Request::Sweep)
        && claim.invoked.at.after(claim.ask.uncertain_retention) <= takeover.acquired.at;
    taken_over || given_away || outlived || dropped
}

/// Whether the effect's own attempt had sent its end before the effect happened.
fn ended(call: &Call, effect: &Effect) -> bool {
    let (Some(Command::Complete { lease, .. }) | Some(Command::Release { lease, .. })) = call.command()
    else {
        return false;
    };
    lease.fence.nonce == effect.fence.nonce && call.invoked.order < effect.when.order
}

/// Whether the call may have taken the key over from the attempt with this number, as permitted.
fn took_over(call: &Call, attempt: u32) -> bool {
    match (call.command(), call.answer()) {
        (Some(Command::Claim(ask)), Some(Answer::Claim(Claim::Acquired(lease)))) => {
            ask.on_lapse == OnLapse::Rerun && lease.fence.attempt > attempt
        }
        (Some(Command::Claim(ask)), None) => ask.on_lapse == OnLapse::Rerun && call.is_open(),
        _ => false,
    }
}

/// Whether the call may have freed the key of the attempt `nonce`.
fn freed(call: &Call, nonce: Nonce) -> bool {
    match call.command() {
        Some(Command::Release { lease, .. }) => {
            lease.fence.nonce == nonce && may_be(call, &Answer::Fenced(Fenced::Applied))
        }
        Some(Command::Settle { settlement, .. }) => {
            settlement.attempt == nonce
                && settlement.verdict == Verdict::NotApplied
                && may_be(call, &Answer::Settled(Settled::Applied))
        }
        Some(Command::Delete { .. }) => may_be(call, &Answer::Deleted(Deleted::Applied)),
        _ => false,
    }
}

/// An outcome that a call may have pinned.
struct Pin<'a> {
    recorded: &'a Recorded,
    /// The earliest moment at which its retention may end.
    until: Timestamp,
}

impl Pin<'_> {
    fn is_over(&self, now: Timestamp) -> bool {
        self.until <= now
    }
}

fn pins(call: &Call) -> Option<Pin<'_>> {
    let (recorded, retention, applied) = match call.command()? {
        Command::Complete { done, retention, .. } => (done, *retention, Answer::Fenced(Fenced::Applied)),
        Command::Settle { settlement, .. } => match &settlement.verdict {
            Verdict::Applied { recorded, retention } => {
                (recorded, *retention, Answer::Settled(Settled::Applied))
            }
            Verdict::NotApplied => return None,
        },
        _ => return None,
    };
    may_be(call, &applied).then(|| Pin { recorded, until: call.invoked.at.after(retention) })
}

/// Whether the record of one outcome may have ended before the other was given.
fn outlived(events: &KeyEvents<'_>, outcome: &GivenOutcome, next: &GivenOutcome) -> bool {
    events.calls.iter().filter(|call| call.invoked.order < next.when.order).any(|call| {
        let deleted = matches!(call.command(), Some(Command::Delete { .. }))
            && may_be(call, &Answer::Deleted(Deleted::Applied));
        let over =
            pins(call).is_some_and(|pin| *pin.recorded == outcome.recorded && pin.is_over(next.when.at));
        deleted || over
    })
}

/// Whether the call got this answer, or may have got it.
fn may_be(call: &Call, answer: &Answer) -> bool {
    call.is_open() || call.answer() == Some(answer)
}
