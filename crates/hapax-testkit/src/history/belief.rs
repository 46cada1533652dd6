//! What is believed of a record while an order of calls is tried, and what a call changes.
//!
//! # Time
//!
//! What a call does depends on the store's clock at its moment, of which only bounds are known: the clock at the
//! invocation and at the answer. So the search does not guess moments. It carries, beside the record, a *span*
//! in which each of its deadlines lies, and the earliest time that the last call may have had. Whether a lease
//! has lapsed at the next call may then be certain or open; where it is open both are tried, and each narrows
//! the spans. `decide` itself gets a record whose deadlines are clearly past or clearly far away; where
//! an owner extends its claim, which does not depend on them, it gets the extremes of the spans instead.

use std::time::Duration;

use hapax_core::transition::{self, Answer, Change, Command, Decision};
use hapax_core::{Claim, Lookup, Record, Status, Timestamp};

use super::linear::SearchCall;
use super::{Reply, Request};

/// The moment at which `decide` is evaluated, and deadlines that are clearly before and after it. No real span is
/// as long as from now to far away, so a deadline that comes back as either of them was not touched.
const NOW: Timestamp = Timestamp::from_millis(1 << 40);
const PAST: Timestamp = Timestamp::from_millis(0);
const FAR: Timestamp = Timestamp::from_millis((1 << 40) + (1 << 61));

/// What is believed of the store after some calls.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Belief {
    /// The last call took effect at this time or later.
    since: u64,
    held: Option<Held>,
}

/// A record, its deadlines known only as spans. The timestamps inside `record` mean nothing.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Held {
    record: Record,
    lease: Span,
    end: Span,
}

/// From the first to the second, both included, in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Span(u64, u64);

impl Span {
    fn meet(self, other: Self) -> Option<Self> {
        let both = Self(self.0.max(other.0), self.1.min(other.1));
        (both.0 <= both.1).then_some(both)
    }

    fn plus(self, span: u64) -> Self {
        Self(self.0.saturating_add(span), self.1.saturating_add(span))
    }

    /// Whether `left` can be what was left at a moment in `now` until a deadline in this span.
    fn leaves(self, now: Self, left: Duration) -> bool {
        let left = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        // A far deadline saturates; then its distance says nothing.
        self.1 == u64::MAX || (self.0.saturating_sub(now.1) <= left && left <= self.1.saturating_sub(now.0))
    }

    /// The moments of `now`, and the deadlines of this span, for which the deadline has come, or has not.
    fn when_past(self, now: Self, past: bool) -> Option<(Self, Self)> {
        if past {
            Some((now.meet(Self(self.0, u64::MAX))?, self.meet(Self(0, now.1))?))
        } else {
            Some((
                now.meet(Self(0, self.1.checked_sub(1)?))?,
                self.meet(Self(now.0.checked_add(1)?, u64::MAX))?,
            ))
        }
    }
}

impl Belief {
    /// The beliefs after `call` took effect; empty when its answer cannot be explained here.
    pub(super) fn after(&self, call: &SearchCall<'_>) -> Vec<Self> {
        let Some(now) = Span(call.earliest, call.latest).meet(Span(self.since, u64::MAX)) else {
            return Vec::new();
        };
        let Some(held) = &self.held else {
            return apply_call(None, now, call).into_iter().collect();
        };
        let in_progress = matches!(held.record.status, Status::InProgress { .. });
        let mut beliefs = Vec::new();
        for expired in [false, true] {
            let Some((now, end)) = held.end.when_past(now, expired) else { continue };
            if !in_progress {
                let held = Held { end, ..held.clone() }.posed(false, expired);
                beliefs.extend(apply_call(Some(held), now, call));
                continue;
            }
            for lapsed in [false, true] {
                let Some((now, lease)) = held.lease.when_past(now, lapsed) else { continue };
                let held = Held { end, lease, ..held.clone() }.posed(lapsed, expired);
                beliefs.extend(apply_call(Some(held), now, call));
            }
        }
        beliefs
    }
}

impl Held {
    /// The same with deadlines in the record that are clearly past or far away.
    fn posed(mut self, lapsed: bool, expired: bool) -> Self {
        let pose = |past| if past { PAST } else { FAR };
        self.record.expires_at = pose(expired);
        if let Status::InProgress { lease_until } = &mut self.record.status {
            *lease_until = pose(lapsed);
        }
        self
    }

    /// The record that `decide` made of `before` at a moment in `now`.
    fn put(before: Option<&Self>, record: Record, now: Span, command: &Command) -> Self {
        let extension = before
            .filter(|before| before.record.fence == record.fence && before.record.state() == record.state());
        let (lease, end) = match extension {
            Some(before) => before.extended(now, command),
            None => {
                // An untouched deadline keeps its span; any other counts from now.
                let span = |deadline: Timestamp, kept: Option<Span>| match kept {
                    Some(kept) if deadline == PAST || deadline == FAR => kept,
                    _ => now.plus(deadline.as_millis().saturating_sub(NOW.as_millis())),
                };
                let end = span(record.expires_at, before.map(|before| before.end));
                match record.status {
                    Status::InProgress { lease_until } => {
                        (span(lease_until, before.map(|before| before.lease)), end)
                    }
                    // No lease: one value for all, so that equal beliefs are equal.
                    _ => (Span(0, 0), end),
                }
            }
        };
        let mut held = Self { record, lease, end };
        (held.record.created_at, held.record.updated_at) = (PAST, PAST);
        held.posed(false, false)
    }

    /// The deadlines after the owner's own claim was extended, which happens whether or not it had lapsed.
    ///
    /// They grow with the moment and with the record's end and shrink with the old lease's end, so the extremes
    /// of these give the extremes of those.
    fn extended(&self, now: Span, command: &Command) -> (Span, Span) {
        let at = |now: u64, lease: u64, end: u64| {
            let mut record = self.record.clone();
            record.status = Status::InProgress { lease_until: Timestamp::from_millis(lease) };
            record.expires_at = Timestamp::from_millis(end);
            match transition::decide(Some(&record), command, Timestamp::from_millis(now)).change {
                Change::Put(put) => match put.status {
                    Status::InProgress { lease_until } => {
                        (lease_until.as_millis(), put.expires_at.as_millis())
                    }
                    _ => (lease, end),
                },
                Change::Keep | Change::Remove => (lease, end),
            }
        };
        let (least, most) = (at(now.0, self.lease.1, self.end.0), at(now.1, self.lease.0, self.end.1));
        (Span(least.0, most.0), Span(least.1, most.1))
    }
}

/// Evaluates the specification of `call` on `held` at a moment in `now`, and compares the answer.
fn apply_call(held: Option<Held>, now: Span, call: &SearchCall<'_>) -> Option<Belief> {
    let unchanged = |held: Option<Held>, now: Span| {
        // A call without an answer that changes nothing need not be placed.
        call.reply.is_some().then(|| Belief { since: now.0, held: held.map(|held| held.posed(false, false)) })
    };
    match call.request {
        Request::Sweep => {
            let due = held.as_ref().and_then(|held| transition::due(&held.record, NOW));
            due.map(|_| Belief { since: now.0, held: None })
        }
        Request::Get(_) => match (call.reply, held) {
            (Some(Reply::Lookup(Lookup::Absent)), None) => unchanged(None, now),
            (Some(Reply::Lookup(Lookup::Found { record, now: read_at })), Some(held)) => {
                let now = now.meet(Span(read_at.as_millis(), read_at.as_millis()))?;
                unchanged(Some(seen(held, record)?), now)
            }
            _ => None,
        },
        Request::Command(command) => {
            let Decision { change, answer } =
                transition::decide(held.as_ref().map(|held| &held.record), command, NOW);
            if let Some(reply) = call.reply
                && !agrees(&answer, reply, held.as_ref(), now)
            {
                return None;
            }
            match change {
                Change::Keep => unchanged(held, now),
                Change::Put(record) => {
                    Some(Belief { since: now.0, held: Some(Held::put(held.as_ref(), *record, now, command)) })
                }
                Change::Remove => Some(Belief { since: now.0, held: None }),
            }
        }
    }
}

/// `held` with its deadlines as a reader saw them, if the two agree.
fn seen(held: Held, record: &Record) -> Option<Held> {
    let exactly = |deadline: Timestamp| Span(deadline.as_millis(), deadline.as_millis());
    let end = held.end.meet(exactly(record.expires_at))?;
    let mut lease = held.lease;
    let mut status = record.status.clone();
    if let (Status::InProgress { lease_until }, Status::InProgress { lease_until: posed }) =
        (&mut status, &held.record.status)
    {
        lease = lease.meet(exactly(*lease_until))?;
        *lease_until = *posed;
    }
    let same = status == held.record.status
        && record.fence == held.record.fence
        && record.fingerprint == held.record.fingerprint
        && record.key == held.record.key;
    same.then_some(Held { lease, end, ..held })
}

/// Whether the store's reply is the specified answer; spans in it are held against the deadlines' spans.
fn agrees(expected: &Answer, reply: &Reply, held: Option<&Held>, now: Span) -> bool {
    let Reply::Answer(reply) = reply else { return false };
    match (expected, reply) {
        (
            Answer::Claim(Claim::Busy { lease_left: posed }),
            Answer::Claim(Claim::Busy { lease_left: told }),
        ) => {
            // A released attempt that claims again has no lease, so no time is left of it.
            if posed.is_zero() {
                told.is_zero()
            } else {
                held.is_some_and(|held| held.lease.leaves(now, *told))
            }
        }
        (
            Answer::Claim(Claim::Replay { recorded: expected, .. }),
            Answer::Claim(Claim::Replay { recorded, remaining }),
        ) => expected == recorded && held.is_some_and(|held| held.end.leaves(now, *remaining)),
        (expected, reply) => expected == reply,
    }
}
