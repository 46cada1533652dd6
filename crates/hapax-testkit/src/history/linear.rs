//! Whether the calls of one key can be put in an order that explains every answer.
//!
//! # What is checked
//!
//! Every call takes effect at one moment between its invocation and its answer, and in the order of those
//! moments each answer is the one that [`decide`](hapax_core::transition::decide) gives. A call without an
//! answer, or with an unknown one, may take effect at any moment after its invocation, or never. A call that
//! failed as not applied never does. A sweep may remove the record if it is due at some moment of the sweep.
//!
//! What a call does depends on the time of its moment, of which only bounds are known; `belief` says how that is
//! handled.
//!
//! # Soundness
//!
//! Every order and choice of moments that really explains the calls is among those tried: the bounds hold by
//! construction, a narrowed span keeps every value that agrees with the choice made, and a computed deadline's
//! span contains the true deadline. So a history of a correct store is never reported. The other direction has a
//! limit: each comparison is checked against the spans alone, so an illegal history may pass if every single
//! comparison can be true but not all of them together. When the clock does not move during calls all spans are
//! single moments and nothing is lost.
//!
//! # Search
//!
//! Wing and Gong's search with Lowe's memory of visited states: the calls that may be next are those invoked before
//! the first answer still to come, and no state (placed calls, believed record) is entered twice, nor one that
//! differs from a state where the search failed only in that fewer unanswered calls are left to use. A call without
//! an answer that would change nothing is never placed, since leaving it out explains as much. Of several unanswered
//! calls that no reply distinguishes, only the oldest is tried.

use std::cmp::Reverse;
use std::collections::HashMap;

use hapax_core::transition::{Answer, Command};
use hapax_core::{Claim, ClaimRequest, Deleted, Fenced, Lookup, Nonce, RecordId, Settled};

use super::belief::Belief;
use super::timeline::{Rule, Violation};
use super::{Call, CallEnd, Reply, Request};

/// States visited before a history counts as too concurrent: a few seconds, and far more than histories of a few
/// hundred calls with a few concurrent ones need.
const STATES_MAX: usize = 500_000;

/// The same for each try to shorten a timeline.
const STATES_MAX_SHORTER: usize = 20_000;

/// Checks the calls of one key.
pub(super) fn check(id: RecordId, calls: &[&Call]) -> Result<(), Box<Violation>> {
    match search(&search_calls(calls, u64::MAX), STATES_MAX) {
        SearchResult::Explained => Ok(()),
        SearchResult::TooConcurrent => {
            let open = calls.iter().copied().filter(|call| call.is_open());
            Err(Box::new(Violation::new(Rule::TooConcurrent, id, open, None)))
        }
        SearchResult::Unexplained => {
            let (calls, culprit) = shortest_violation(calls);
            Err(Box::new(Violation::new(Rule::NotLinearisable, id, calls.iter().copied(), Some(culprit))))
        }
    }
}

/// The shortest prefix of the history that cannot be explained, without the failed calls that do not matter, and the
/// order of the answer with which it breaks.
fn shortest_violation<'a>(calls: &[&'a Call]) -> (Vec<&'a Call>, u64) {
    let mut answers: Vec<u64> =
        calls.iter().filter_map(|call| call.end.as_ref().map(|(when, _)| when.order)).collect();
    answers.sort_unstable();
    // A prefix that cannot be explained has no continuation that can, so a binary search finds the break.
    let broken = answers
        .partition_point(|until| search(&search_calls(calls, *until), STATES_MAX) == SearchResult::Explained);
    let until = answers.get(broken).copied().unwrap_or(u64::MAX);
    let mut kept: Vec<&Call> =
        calls.iter().copied().filter(|call| call.invoked.order < until && !call.failed()).collect();
    let mut at = 0;
    while at < kept.len() {
        let is_culprit = kept[at].end.as_ref().is_some_and(|(when, _)| when.order == until);
        if !is_culprit && kept[at].changed_nothing() {
            let without = kept.remove(at);
            if search(&search_calls(&kept, until), STATES_MAX_SHORTER) == SearchResult::Unexplained {
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
        matches!(self.end, Some((_, CallEnd::NotApplied)))
    }

    /// Whether the answer itself says that the record is unchanged.
    fn changed_nothing(&self) -> bool {
        match self.answer() {
            Some(Answer::Claim(claim)) => {
                matches!(claim, Claim::Busy { .. } | Claim::Mismatch | Claim::Replay { .. })
            }
            Some(Answer::Fenced(fenced)) => *fenced == Fenced::Lost,
            Some(Answer::Settled(settled)) => *settled != Settled::Applied,
            Some(Answer::Deleted(deleted)) => *deleted != Deleted::Applied,
            None => matches!(self.end, Some((_, CallEnd::Answered(Reply::Lookup(_))))),
        }
    }
}

/// A call as the search sees it.
pub(super) struct SearchCall<'a> {
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
fn search_calls<'a>(calls: &[&'a Call], until: u64) -> Vec<SearchCall<'a>> {
    let mut search_calls: Vec<SearchCall<'a>> = calls
        .iter()
        .filter(|call| call.invoked.order < until && !call.failed())
        .map(|call| {
            let (request, invoked, earliest) =
                (&call.request, call.invoked.order, call.invoked.at.as_millis());
            let open = SearchCall {
                request,
                reply: None,
                invoked,
                answered: u64::MAX,
                earliest,
                latest: u64::MAX,
                kind: None,
            };
            match &call.end {
                Some((when, CallEnd::Answered(reply))) if when.order <= until => SearchCall {
                    reply: Some(reply).filter(|_| *request != Request::Sweep),
                    answered: when.order,
                    latest: when.at.as_millis(),
                    ..open
                },
                _ => open,
            }
        })
        .collect();
    find_kinds(&mut search_calls);
    search_calls
}

/// Numbers the kinds of unanswered calls that can stand for each other: sweeps, and claims that ask for the same
/// with nonces that nothing else in the history mentions.
fn find_kinds(search_calls: &mut [SearchCall<'_>]) {
    let mut mentions: HashMap<Nonce, usize> = HashMap::new();
    for nonce in search_calls.iter().flat_map(mentioned) {
        *mentions.entry(nonce).or_default() += 1;
    }
    let mut kinds: Vec<Request> = Vec::new();
    for call in search_calls.iter_mut().filter(|call| call.answered == u64::MAX) {
        let kind = match call.request {
            Request::Sweep => Request::Sweep,
            Request::Command(Command::Claim(ask)) if mentions.get(&ask.nonce) == Some(&1) => {
                let nonce = Nonce::from_bytes([0; 16]);
                Request::Command(Command::Claim(ClaimRequest { nonce, ..ask.clone() }))
            }
            _ => continue,
        };
        call.kind = Some(kinds.iter().position(|known| *known == kind).unwrap_or(kinds.len()));
        if call.kind == Some(kinds.len()) {
            kinds.push(kind);
        }
    }
}

/// The attempts that a call or its answer names.
fn mentioned(call: &SearchCall<'_>) -> Vec<Nonce> {
    let mut nonces = match call.request {
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
    match call.reply {
        Some(Reply::Answer(Answer::Claim(Claim::Uncertain { fence, .. }))) => nonces.push(fence.nonce),
        Some(Reply::Lookup(Lookup::Found { record, .. })) => nonces.push(record.fence.nonce),
        _ => {}
    }
    nonces
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SearchResult {
    Explained,
    Unexplained,
    TooConcurrent,
}

/// How far an order has come: which calls it holds, and what is believed of the record after them.
#[derive(Clone)]
struct SearchState {
    at: SearchPosition,
    /// The calls before the position's first that may still be placed, or never: those without an answer, ascending.
    open: Vec<usize>,
}

/// What two orders must have in common to have the same future, but for their open calls.
#[derive(Clone, PartialEq, Eq, Hash)]
struct SearchPosition {
    /// Every call with an answer before this one is placed.
    first: usize,
    /// The placed calls from `first` on, ascending.
    ahead: Vec<usize>,
    /// The latest invocation among the placed calls: nothing that ended before it can still be placed.
    invoked: u64,
    belief: Belief,
}

fn search(search_calls: &[SearchCall<'_>], states_max: usize) -> SearchResult {
    let belief = Belief::default();
    let mut start = SearchState {
        at: SearchPosition { first: 0, ahead: Vec::new(), invoked: 0, belief },
        open: Vec::new(),
    };
    start.advance_front(search_calls);
    let mut visited: HashMap<SearchPosition, Vec<Vec<usize>>> = HashMap::new();
    let mut states = 0;
    let mut stack = vec![start];
    while let Some(state) = stack.pop() {
        if state.at.first == search_calls.len() {
            return SearchResult::Explained;
        }
        let here = visited.entry(state.at.clone()).or_default();
        // Fewer open calls explain no more than more of them did.
        if here.iter().any(|open| is_subset(&state.open, open)) {
            continue;
        }
        here.push(state.open.clone());
        states += 1;
        if states > states_max {
            return SearchResult::TooConcurrent;
        }
        for at in state.candidates(search_calls) {
            for belief in state.at.belief.after(&search_calls[at]) {
                stack.push(state.with(search_calls, at, belief));
            }
        }
    }
    SearchResult::Unexplained
}

/// Whether every member of `small` is in `large`; both are ascending.
fn is_subset(small: &[usize], large: &[usize]) -> bool {
    let mut rest = large.iter();
    small.iter().all(|wanted| rest.any(|at| at == wanted))
}

impl SearchState {
    /// The calls that may take effect next, in ascending likelihood: calls with an answer last, of these the earliest
    /// last.
    fn candidates(&self, search_calls: &[SearchCall<'_>]) -> Vec<usize> {
        let mut found = self.open.clone();
        let mut first_answer = u64::MAX;
        for (at, call) in search_calls.iter().enumerate().skip(self.at.first) {
            if call.invoked > first_answer {
                break;
            }
            if self.at.ahead.binary_search(&at).is_ok() {
                continue;
            }
            if call.reply.is_some() {
                first_answer = first_answer.min(call.answered);
            }
            found.push(at);
        }
        found.retain(|at| {
            let call = &search_calls[*at];
            call.invoked < first_answer && call.answered > self.at.invoked
        });
        let mut kinds = Vec::new();
        found.retain(|at| match search_calls[*at].kind {
            Some(kind) if kinds.contains(&kind) => false,
            Some(kind) => {
                kinds.push(kind);
                true
            }
            None => true,
        });
        found.sort_by_key(|at| (search_calls[*at].reply.is_some(), Reverse(search_calls[*at].answered)));
        found
    }

    /// The state after `at` has taken effect.
    fn with(&self, search_calls: &[SearchCall<'_>], at: usize, belief: Belief) -> Self {
        let mut next = self.clone();
        next.at.belief = belief;
        next.at.invoked = self.at.invoked.max(search_calls[at].invoked);
        if at < self.at.first {
            next.open.retain(|open| *open != at);
        } else if let Err(gap) = next.at.ahead.binary_search(&at) {
            next.at.ahead.insert(gap, at);
        }
        next.advance_front(search_calls);
        next
    }

    /// Moves the position's first past everything that is placed or need not be.
    fn advance_front(&mut self, search_calls: &[SearchCall<'_>]) {
        let position = &mut self.at;
        while position.first < search_calls.len() {
            if position.ahead.first() == Some(&position.first) {
                position.ahead.remove(0);
            } else if search_calls[position.first].reply.is_none() {
                self.open.push(position.first);
            } else {
                break;
            }
            position.first += 1;
        }
        self.open.retain(|at| search_calls[*at].answered > position.invoked);
    }
}
