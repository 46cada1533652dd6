//! Whether the calls of one key can be put in an order that explains every answer.
//!
//! # What is judged
//!
//! Every call takes effect at one moment between its invocation and its answer, and in the order of those
//! moments each answer is the one that [`transition::decide`] gives. A call without an answer, or with an
//! unknown one, may take effect at any moment after its invocation, or never. A call that failed as not applied
//! never does. A sweep may remove the record if it is due at some moment of the sweep.
//!
//! # Time
//!
//! What a call does depends on the store's clock at its moment, of which only bounds are known: the clock at the
//! invocation and at the answer. So the search does not guess moments. It carries, beside the record, a *span*
//! in which each of its deadlines lies, and the earliest time that the last call may have had. Whether a lease
//! has lapsed at the next call may then be certain or open; where it is open both are tried, and each narrows
//! the spans. `decide` itself is asked with a record whose deadlines are plainly past or plainly far away.
//!
//! # Soundness
//!
//! Every order and choice of moments that really explains the calls is among those tried: the bounds hold by
//! construction, a narrowed span keeps every value that agrees with the choice made, and a computed deadline's
//! span contains the true deadline. So a history of a correct store is never refused. The other direction has a
//! limit: each comparison is judged against the spans alone, so an illegal history may pass if every single
//! comparison can be true but not all of them together. When the clock does not move during calls all spans are
//! single moments and nothing is lost.
//!
//! # Search
//!
//! Wing and Gong's search with Lowe's memory of visited places: the calls that may be next are those invoked
//! before the first answer still to come, and a place (calls done, what is believed) is never entered twice. A
//! call without an answer that would change nothing is never placed, since leaving it out explains as much.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::time::Duration;

use hapax_core::transition::{self, Answer, Change, Decision};
use hapax_core::{Claim, Lookup, Record, RecordId, Status, Timestamp};

use super::story::{Rule, Violation};
use super::{Call, End, Reply, Request};

/// Places visited before a history is given up as too concurrent: far more than any test of ours needs.
const PLACES_MAX: usize = 2_000_000;

/// The moment at which `decide` is asked, and deadlines that are plainly before and after it. No real span is
/// as long as from now to far away, so a deadline that comes back as either of them was not touched.
const NOW: Timestamp = Timestamp::from_millis(1 << 40);
const PAST: Timestamp = Timestamp::from_millis(0);
const FAR: Timestamp = Timestamp::from_millis((1 << 40) + (1 << 61));

/// Judges the calls of one key.
pub(super) fn check(id: RecordId, calls: &[&Call]) -> Result<(), Box<Violation>> {
    match search(&entries(calls, u64::MAX)) {
        Found::Explained => Ok(()),
        Found::TooConcurrent => {
            Err(Box::new(Violation::new(Rule::TooConcurrent, id, calls.iter().copied(), None)))
        }
        Found::Unexplained => {
            let (calls, culprit) = smallest(calls);
            Err(Box::new(Violation::new(Rule::NotLinearisable, id, calls.iter().copied(), Some(culprit))))
        }
    }
}

/// The shortest beginning of the history that cannot be explained, without the refusals that do not matter, and
/// the order of the answer with which it breaks.
fn smallest<'a>(calls: &[&'a Call]) -> (Vec<&'a Call>, u64) {
    let mut answers: Vec<u64> =
        calls.iter().filter_map(|call| call.end.as_ref().map(|(when, _)| when.order)).collect();
    answers.sort_unstable();
    // A beginning that cannot be explained has no continuation that can: the break is at one place.
    let broken = answers.partition_point(|until| search(&entries(calls, *until)) == Found::Explained);
    let until = answers.get(broken).copied().unwrap_or(u64::MAX);
    let mut kept: Vec<&Call> =
        calls.iter().copied().filter(|call| call.invoked.order < until && !call.failed()).collect();
    let mut at = 0;
    while at < kept.len() {
        let is_culprit = kept[at].end.as_ref().is_some_and(|(when, _)| when.order == until);
        if !is_culprit && kept[at].changed_nothing() {
            let without = kept.remove(at);
            if search(&entries(&kept, until)) == Found::Unexplained {
                continue;
            }
            kept.insert(at, without);
        }
        at += 1;
    }
    (kept, until)
}

impl Call {
    fn failed(&self) -> bool {
        matches!(self.end, Some((_, End::NotApplied)))
    }

    /// Whether the answer itself says that the record is as it was.
    fn changed_nothing(&self) -> bool {
        match self.answer() {
            Some(Answer::Claim(claim)) => {
                matches!(claim, Claim::Busy { .. } | Claim::Mismatch | Claim::Replay { .. })
            }
            Some(Answer::Fenced(fenced)) => *fenced == hapax_core::Fenced::Lost,
            Some(Answer::Settled(settled)) => *settled != hapax_core::Settled::Applied,
            Some(Answer::Deleted(deleted)) => *deleted != hapax_core::Deleted::Applied,
            None => matches!(self.end, Some((_, End::Answered(Reply::Lookup(_))))),
        }
    }
}

/// A call as the search sees it.
struct Entry<'a> {
    request: &'a Request,
    /// The answer to explain; a call without one may be left out.
    reply: Option<&'a Reply>,
    invoked: u64,
    answered: u64,
    earliest: u64,
    latest: u64,
}

/// The calls in the order of invocation, as they stood just after the event `until`.
fn entries<'a>(calls: &[&'a Call], until: u64) -> Vec<Entry<'a>> {
    calls
        .iter()
        .filter(|call| call.invoked.order < until && !call.failed())
        .map(|call| {
            let (request, invoked, earliest) =
                (&call.request, call.invoked.order, call.invoked.at.as_millis());
            let open =
                Entry { request, reply: None, invoked, answered: u64::MAX, earliest, latest: u64::MAX };
            match &call.end {
                Some((when, End::Answered(reply))) if when.order <= until => Entry {
                    reply: Some(reply).filter(|_| *request != Request::Sweep),
                    answered: when.order,
                    latest: when.at.as_millis(),
                    ..open
                },
                _ => open,
            }
        })
        .collect()
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Found {
    Explained,
    Unexplained,
    TooConcurrent,
}

/// How far an order has come: which calls it holds, and what is believed after them.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Place {
    /// Every call with an answer before this one is placed.
    first: usize,
    /// The placed calls from `first` on, ascending.
    ahead: Vec<usize>,
    /// The calls before `first` that may still be placed, or never: those without an answer.
    open: Vec<usize>,
    /// The latest invocation among the placed calls: nothing that ended before it can still be placed.
    invoked: u64,
    belief: Belief,
}

fn search(entries: &[Entry<'_>]) -> Found {
    let belief = Belief { since: 0, held: None };
    let mut start = Place { first: 0, ahead: Vec::new(), open: Vec::new(), invoked: 0, belief };
    start.settle_front(entries);
    let mut seen = HashSet::new();
    let mut stack = vec![start];
    while let Some(place) = stack.pop() {
        if place.first == entries.len() {
            return Found::Explained;
        }
        if seen.contains(&place) {
            continue;
        }
        if seen.len() == PLACES_MAX {
            return Found::TooConcurrent;
        }
        for at in place.candidates(entries) {
            for belief in place.belief.after(&entries[at]) {
                stack.push(place.with(entries, at, belief));
            }
        }
        seen.insert(place);
    }
    Found::Unexplained
}

impl Place {
    /// The calls that may take effect next, the likeliest last: one with an answer, and the earliest of these.
    fn candidates(&self, entries: &[Entry<'_>]) -> Vec<usize> {
        let mut found = self.open.clone();
        let mut first_answer = u64::MAX;
        for (at, entry) in entries.iter().enumerate().skip(self.first) {
            if entry.invoked > first_answer {
                break;
            }
            if self.ahead.binary_search(&at).is_ok() {
                continue;
            }
            if entry.reply.is_some() {
                first_answer = first_answer.min(entry.answered);
            }
            found.push(at);
        }
        found.retain(|at| {
            let entry = &entries[*at];
            entry.invoked < first_answer && entry.answered > self.invoked
        });
        found.sort_by_key(|at| (entries[*at].reply.is_some(), Reverse(entries[*at].answered)));
        found
    }

    /// The place after `at` has taken effect.
    fn with(&self, entries: &[Entry<'_>], at: usize, belief: Belief) -> Self {
        let mut next = Self { belief, invoked: self.invoked.max(entries[at].invoked), ..self.clone() };
        if at < self.first {
            next.open.retain(|open| *open != at);
        } else if let Err(gap) = next.ahead.binary_search(&at) {
            next.ahead.insert(gap, at);
        }
        next.settle_front(entries);
        next
    }

    /// Moves `first` past everything that is placed or need not be.
    fn settle_front(&mut self, entries: &[Entry<'_>]) {
        while self.first < entries.len() {
            if self.ahead.first() == Some(&self.first) {
                self.ahead.remove(0);
            } else if entries[self.first].reply.is_none() {
                self.open.push(self.first);
            } else {
                break;
            }
            self.first += 1;
        }
        let invoked = self.invoked;
        self.open.retain(|at| entries[*at].answered > invoked);
    }
}

/// What is believed of the store after some calls.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Belief {
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
    /// What may be believed after `entry` took effect; nothing when its answer cannot be explained here.
    fn after(&self, entry: &Entry<'_>) -> Vec<Self> {
        let Some(now) = Span(entry.earliest, entry.latest).meet(Span(self.since, u64::MAX)) else {
            return Vec::new();
        };
        let Some(held) = &self.held else {
            return judge(None, now, entry).into_iter().collect();
        };
        let in_progress = matches!(held.record.status, Status::InProgress { .. });
        let mut beliefs = Vec::new();
        for expired in [false, true] {
            let Some((now, end)) = held.end.when_past(now, expired) else { continue };
            if !in_progress {
                let held = Held { end, ..held.clone() }.posed(false, expired);
                beliefs.extend(judge(Some(held), now, entry));
                continue;
            }
            for lapsed in [false, true] {
                let Some((now, lease)) = held.lease.when_past(now, lapsed) else { continue };
                let held = Held { end, lease, ..held.clone() }.posed(lapsed, expired);
                beliefs.extend(judge(Some(held), now, entry));
            }
        }
        beliefs
    }
}

impl Held {
    /// The same with deadlines in the record that are plainly past or far away.
    fn posed(mut self, lapsed: bool, expired: bool) -> Self {
        let pose = |past| if past { PAST } else { FAR };
        self.record.expires_at = pose(expired);
        if let Status::InProgress { lease_until } = &mut self.record.status {
            *lease_until = pose(lapsed);
        }
        self
    }

    /// The record that `decide` made of this one at a moment in `now`: untouched deadlines keep their spans.
    fn put(before: Option<&Self>, record: Record, now: Span) -> Self {
        let span = |deadline: Timestamp, kept: Option<Span>| match kept {
            Some(kept) if deadline == PAST || deadline == FAR => kept,
            _ => now.plus(deadline.as_millis().saturating_sub(NOW.as_millis())),
        };
        let end = span(record.expires_at, before.map(|held| held.end));
        let lease = match record.status {
            Status::InProgress { lease_until } => span(lease_until, before.map(|held| held.lease)),
            // No lease: one value for all, so that equal beliefs are equal.
            _ => Span(0, 0),
        };
        let mut held = Self { record, lease, end };
        (held.record.created_at, held.record.updated_at) = (PAST, PAST);
        held.posed(false, false)
    }
}

/// Asks the specification what `entry` does to `held` at a moment in `now`, and whether it was answered so.
fn judge(held: Option<Held>, now: Span, entry: &Entry<'_>) -> Option<Belief> {
    let unchanged = |held: Option<Held>, now: Span| {
        // A call without an answer that changes nothing need not be placed.
        entry
            .reply
            .is_some()
            .then(|| Belief { since: now.0, held: held.map(|held| held.posed(false, false)) })
    };
    match entry.request {
        Request::Sweep => {
            let due = held.as_ref().and_then(|held| transition::due(&held.record, NOW));
            due.map(|_| Belief { since: now.0, held: None })
        }
        Request::Get(_) => match (entry.reply, held) {
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
            if let Some(reply) = entry.reply
                && !agrees(&answer, reply, held.as_ref(), now)
            {
                return None;
            }
            match change {
                Change::Keep => unchanged(held, now),
                Change::Put(record) => {
                    Some(Belief { since: now.0, held: Some(Held::put(held.as_ref(), *record, now)) })
                }
                Change::Remove => Some(Belief { since: now.0, held: None }),
            }
        }
    }
}

/// `held` with its deadlines as a reader saw them, if what was seen can be it.
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
            // A released attempt that asks again has no lease, so nothing is left of it.
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
