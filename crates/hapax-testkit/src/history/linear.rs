//! Whether the calls of one key can be put in an order that explains every answer.
//!
//! # What is judged
//!
//! Every call takes effect at one moment between its invocation and its answer, and in the order of those
//! moments each answer is the one that [`decide`](hapax_core::transition::decide) gives. A call without an
//! answer, or with an unknown one, may take effect at any moment after its invocation, or never. A call that
//! failed as not applied never does. A sweep may remove the record if it is due at some moment of the sweep.
//!
//! What a call does depends on the time of its moment, of which only bounds are known; `belief` says how that is
//! judged.
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
//! before the first answer still to come, and no place (calls done, what is believed) is entered twice, nor one
//! that differs from a place where the search failed only in that fewer unanswered calls are left to use. A
//! call without an answer that would change nothing is never placed, since leaving it out explains as much. Of
//! several unanswered calls that differ in nothing that anybody ever saw, only the oldest is tried.

use std::cmp::Reverse;
use std::collections::HashMap;

use hapax_core::transition::{Answer, Command};
use hapax_core::{Claim, ClaimRequest, Deleted, Fenced, Lookup, Nonce, RecordId, Settled};

use super::belief::Belief;
use super::story::{Rule, Violation};
use super::{Call, End, Reply, Request};

/// Places visited before a history is given up as too concurrent: a few seconds, and far more than histories of
/// a few hundred calls with a few at once need.
const PLACES_MAX: usize = 500_000;

/// The same for each try at a shorter story: a longer one is no disaster.
const PLACES_MAX_SHORTER: usize = 20_000;

/// Judges the calls of one key.
pub(super) fn check(id: RecordId, calls: &[&Call]) -> Result<(), Box<Violation>> {
    match search(&entries(calls, u64::MAX), PLACES_MAX) {
        Found::Explained => Ok(()),
        Found::TooConcurrent => {
            let open = calls.iter().copied().filter(|call| call.is_open());
            Err(Box::new(Violation::new(Rule::TooConcurrent, id, open, None)))
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
    let broken =
        answers.partition_point(|until| search(&entries(calls, *until), PLACES_MAX) == Found::Explained);
    let until = answers.get(broken).copied().unwrap_or(u64::MAX);
    let mut kept: Vec<&Call> =
        calls.iter().copied().filter(|call| call.invoked.order < until && !call.failed()).collect();
    let mut at = 0;
    while at < kept.len() {
        let is_culprit = kept[at].end.as_ref().is_some_and(|(when, _)| when.order == until);
        if !is_culprit && kept[at].changed_nothing() {
            let without = kept.remove(at);
            if search(&entries(&kept, until), PLACES_MAX_SHORTER) == Found::Unexplained {
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
            Some(Answer::Fenced(fenced)) => *fenced == Fenced::Lost,
            Some(Answer::Settled(settled)) => *settled != Settled::Applied,
            Some(Answer::Deleted(deleted)) => *deleted != Deleted::Applied,
            None => matches!(self.end, Some((_, End::Answered(Reply::Lookup(_))))),
        }
    }
}

/// A call as the search sees it.
pub(super) struct Entry<'a> {
    pub(super) request: &'a Request,
    /// The answer to explain; a call without one may be left out.
    pub(super) reply: Option<&'a Reply>,
    invoked: u64,
    answered: u64,
    pub(super) earliest: u64,
    pub(super) latest: u64,
    /// Unanswered calls of the same kind can stand for each other: the oldest is as good as any.
    kind: Option<usize>,
}

/// The calls in the order of invocation, as they stood just after the event `until`.
fn entries<'a>(calls: &[&'a Call], until: u64) -> Vec<Entry<'a>> {
    let mut entries: Vec<Entry<'a>> = calls
        .iter()
        .filter(|call| call.invoked.order < until && !call.failed())
        .map(|call| {
            let (request, invoked, earliest) =
                (&call.request, call.invoked.order, call.invoked.at.as_millis());
            let open = Entry {
                request,
                reply: None,
                invoked,
                answered: u64::MAX,
                earliest,
                latest: u64::MAX,
                kind: None,
            };
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
        .collect();
    find_kinds(&mut entries);
    entries
}

/// Numbers the kinds of unanswered calls that can stand for each other: sweeps, and claims that ask for the same
/// with nonces that nothing else in the history mentions.
fn find_kinds(entries: &mut [Entry<'_>]) {
    let mut mentions: HashMap<Nonce, usize> = HashMap::new();
    for nonce in entries.iter().flat_map(mentioned) {
        *mentions.entry(nonce).or_default() += 1;
    }
    let mut kinds: Vec<Request> = Vec::new();
    for entry in entries.iter_mut().filter(|entry| entry.answered == u64::MAX) {
        let kind = match entry.request {
            Request::Sweep => Request::Sweep,
            Request::Command(Command::Claim(ask)) if mentions.get(&ask.nonce) == Some(&1) => {
                let nonce = Nonce::from_bytes([0; 16]);
                Request::Command(Command::Claim(ClaimRequest { nonce, ..ask.clone() }))
            }
            _ => continue,
        };
        entry.kind = Some(kinds.iter().position(|known| *known == kind).unwrap_or(kinds.len()));
        if entry.kind == Some(kinds.len()) {
            kinds.push(kind);
        }
    }
}

/// The attempts that a call or its answer names.
fn mentioned(entry: &Entry<'_>) -> Vec<Nonce> {
    let mut nonces = match entry.request {
        Request::Sweep | Request::Get(_) => Vec::new(),
        Request::Command(command) => match command {
            Command::Claim(ask) => vec![ask.nonce],
            Command::Renew(lease)
            | Command::Complete { lease, .. }
            | Command::Release { lease, .. }
            | Command::Abandon { lease, .. } => vec![lease.fence.nonce],
            Command::Settle { settlement, .. } => vec![settlement.attempt, settlement.nonce],
            Command::Delete { nonce, .. } => vec![*nonce],
        },
    };
    match entry.reply {
        Some(Reply::Answer(Answer::Claim(Claim::Uncertain { fence, .. }))) => nonces.push(fence.nonce),
        Some(Reply::Lookup(Lookup::Found { record, .. })) => nonces.push(record.fence.nonce),
        _ => {}
    }
    nonces
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Found {
    Explained,
    Unexplained,
    TooConcurrent,
}

/// How far an order has come: which calls it holds, and what is believed after them.
#[derive(Clone)]
struct Place {
    at: Spot,
    /// The calls before the spot's first that may still be placed, or never: those without an answer, ascending.
    open: Vec<usize>,
}

/// What two orders must have in common to have the same future, but for their open calls.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Spot {
    /// Every call with an answer before this one is placed.
    first: usize,
    /// The placed calls from `first` on, ascending.
    ahead: Vec<usize>,
    /// The latest invocation among the placed calls: nothing that ended before it can still be placed.
    invoked: u64,
    belief: Belief,
}

fn search(entries: &[Entry<'_>], places_max: usize) -> Found {
    let belief = Belief::default();
    let mut start = Place { at: Spot { first: 0, ahead: Vec::new(), invoked: 0, belief }, open: Vec::new() };
    start.settle_front(entries);
    let mut visited: HashMap<Spot, Vec<Vec<usize>>> = HashMap::new();
    let mut places = 0;
    let mut stack = vec![start];
    while let Some(place) = stack.pop() {
        if place.at.first == entries.len() {
            return Found::Explained;
        }
        let here = visited.entry(place.at.clone()).or_default();
        // Fewer open calls explain no more than more of them did.
        if here.iter().any(|open| is_subset(&place.open, open)) {
            continue;
        }
        here.push(place.open.clone());
        places += 1;
        if places > places_max {
            return Found::TooConcurrent;
        }
        for at in place.candidates(entries) {
            for belief in place.at.belief.after(&entries[at]) {
                stack.push(place.with(entries, at, belief));
            }
        }
    }
    Found::Unexplained
}

/// Whether every member of `small` is in `large`; both are ascending.
fn is_subset(small: &[usize], large: &[usize]) -> bool {
    let mut rest = large.iter();
    small.iter().all(|wanted| rest.any(|at| at == wanted))
}

impl Place {
    /// The calls that may take effect next, the likeliest last: one with an answer, and the earliest of these.
    fn candidates(&self, entries: &[Entry<'_>]) -> Vec<usize> {
        let mut found = self.open.clone();
        let mut first_answer = u64::MAX;
        for (at, entry) in entries.iter().enumerate().skip(self.at.first) {
            if entry.invoked > first_answer {
                break;
            }
            if self.at.ahead.binary_search(&at).is_ok() {
                continue;
            }
            if entry.reply.is_some() {
                first_answer = first_answer.min(entry.answered);
            }
            found.push(at);
        }
        found.retain(|at| {
            let entry = &entries[*at];
            entry.invoked < first_answer && entry.answered > self.at.invoked
        });
        let mut kinds = Vec::new();
        found.retain(|at| match entries[*at].kind {
            Some(kind) if kinds.contains(&kind) => false,
            Some(kind) => {
                kinds.push(kind);
                true
            }
            None => true,
        });
        found.sort_by_key(|at| (entries[*at].reply.is_some(), Reverse(entries[*at].answered)));
        found
    }

    /// The place after `at` has taken effect.
    fn with(&self, entries: &[Entry<'_>], at: usize, belief: Belief) -> Self {
        let mut next = self.clone();
        next.at.belief = belief;
        next.at.invoked = self.at.invoked.max(entries[at].invoked);
        if at < self.at.first {
            next.open.retain(|open| *open != at);
        } else if let Err(gap) = next.at.ahead.binary_search(&at) {
            next.at.ahead.insert(gap, at);
        }
        next.settle_front(entries);
        next
    }

    /// Moves the spot's first past everything that is placed or need not be.
    fn settle_front(&mut self, entries: &[Entry<'_>]) {
        let spot = &mut self.at;
        while spot.first < entries.len() {
            if spot.ahead.first() == Some(&spot.first) {
                spot.ahead.remove(0);
            } else if entries[spot.first].reply.is_none() {
                self.open.push(spot.first);
            } else {
                break;
            }
            spot.first += 1;
        }
        self.open.retain(|at| entries[*at].answered > spot.invoked);
    }
}
