//! The oracle's expected state of each record, made from what the store applied.

use hapax_core::OnLapse;
use hapax_core::store::TOMBSTONE_RETENTION;

use super::super::clock::millis;
use super::super::event::{AttemptId, KeyId, ProcessId, RunEnd, RunId, StoreEffect};
use super::Oracle;

/// All records.
#[derive(Debug, Default)]
pub(super) struct Records {
    by_key: Vec<ExpectedRecord>,
}

/// The state that a record must have.
#[derive(Debug, Default)]
pub(super) struct ExpectedRecord {
    /// Counts how often the key was new.
    pub(super) life: u32,
    status: ExpectedStatus,
    holder: Option<AttemptId>,
    number: u32,
    /// The holder took over from one that may have executed the operation.
    is_takeover: bool,
    input: u8,
    owner: Option<ProcessId>,
    claimed_ms: u64,
    lease_until_ms: u64,
    ends_ms: u64,
    claims: Vec<(AttemptId, u32)>,
    released: Vec<AttemptId>,
    /// Attempts without a run whose claim was released or abandoned. A late copy of the claim may acquire the key again,
    /// and a late copy of its cancellation then ends that claim in the way that was right for the first one.
    cancelled: Vec<AttemptId>,
    pins: Vec<Pin>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum ExpectedStatus {
    #[default]
    Absent,
    Held,
    Uncertain,
    Pinned(RunId),
    Free,
}

#[derive(Debug)]
struct Pin {
    value: RunId,
    until_ms: u64,
    /// How far the store's clock has jumped since. A process that replays from its cache uses its own clock.
    stepped_ms: u64,
}

impl Records {
    pub(super) fn of(&mut self, key: KeyId) -> &mut ExpectedRecord {
        if self.by_key.len() <= key.index() {
            self.by_key.resize_with(key.index() + 1, ExpectedRecord::default);
        }
        &mut self.by_key[key.index()]
    }

    /// The store's clock jumped ahead of the processes' clocks.
    pub(super) fn stepped(&mut self, store_ms: u64) {
        let pins = self.by_key.iter_mut().flat_map(|expected| &mut expected.pins);
        pins.for_each(|pin| pin.stepped_ms += store_ms);
    }
}

impl ExpectedRecord {
    pub(super) fn was_claimed_by(&self, attempt: AttemptId, number: u32) -> bool {
        self.claims.contains(&(attempt, number))
    }

    pub(super) fn is_released_by(&self, attempt: AttemptId) -> bool {
        self.released.contains(&attempt)
    }

    pub(super) fn was_pinned(&self, value: RunId) -> bool {
        self.pins.iter().any(|pin| pin.value == value)
    }

    /// Whether the value was pinned by now and not yet over at `since_ms`.
    pub(super) fn was_held(&self, value: RunId, since_ms: u64) -> bool {
        self.pins.iter().any(|pin| pin.value == value && pin.until_ms + pin.stepped_ms >= since_ms)
    }

    fn is_lapsed(&self, at_ms: u64) -> bool {
        self.status == ExpectedStatus::Held && self.lease_until_ms <= at_ms
    }

    /// Extends the lease, and the retention with it.
    fn extend(&mut self, lease_until_ms: u64) {
        self.ends_ms += lease_until_ms.saturating_sub(self.lease_until_ms);
        self.lease_until_ms = lease_until_ms;
    }

    /// Whether an attempt without a run may end its claim as that of a takeover, or as that of a free key.
    fn may_be_cancelled(&mut self, attempt: AttemptId, as_takeover: bool) -> bool {
        if self.cancelled.contains(&attempt) {
            return true;
        }
        self.cancelled.push(attempt);
        self.is_takeover == as_takeover
    }

    /// Whether a claim may find no record: there never was one, or it was due.
    fn may_be_new(&self, at_ms: u64) -> bool {
        match self.status {
            ExpectedStatus::Absent => true,
            ExpectedStatus::Held => self.ends_ms <= at_ms && self.lease_until_ms <= at_ms,
            ExpectedStatus::Uncertain | ExpectedStatus::Pinned(_) | ExpectedStatus::Free => {
                self.ends_ms <= at_ms
            }
        }
    }
}

impl Oracle {
    pub(super) fn applied(&mut self, process: ProcessId, key: KeyId, attempt: AttemptId, step: StoreEffect) {
        let at_ms = self.at_ms;
        let is_holder = self.expected(key).holder == Some(attempt);
        match step {
            StoreEffect::Acquired { number, lease_ms, uncertain_ms, on_lapse, input } => {
                let expected = self.expected(key);
                if is_holder && expected.status == ExpectedStatus::Held {
                    expected.extend(at_ms + lease_ms);
                    return;
                }
                self.changes_hands(key, attempt, number, on_lapse);
                let expected = self.expected(key);
                if number == 1 {
                    expected.life += 1;
                }
                expected.status = ExpectedStatus::Held;
                expected.holder = Some(attempt);
                expected.number = number;
                expected.input = input;
                expected.owner = Some(process);
                expected.claimed_ms = at_ms;
                expected.lease_until_ms = at_ms + lease_ms;
                expected.ends_ms = at_ms + uncertain_ms;
                expected.claims.push((attempt, number));
            }
            StoreEffect::Busy => {
                let expected = self.expected(key);
                let is_busy = expected.status == ExpectedStatus::Held && !expected.is_lapsed(at_ms);
                if !(is_busy || is_holder && expected.status == ExpectedStatus::Free) {
                    self.wrong("S7 busy", format!("{attempt} found {key} busy, and it was not"));
                }
            }
            StoreEffect::Mismatch { input } => {
                let expected = self.expected(key);
                if matches!(expected.status, ExpectedStatus::Absent | ExpectedStatus::Free)
                    || expected.input == input
                {
                    self.wrong(
                        "S7 mismatch",
                        format!("{attempt} claimed {key} with its input and got a mismatch"),
                    );
                }
            }
            StoreEffect::Replay { value, input } => {
                let expected = self.expected(key);
                if expected.status != ExpectedStatus::Pinned(value)
                    || expected.ends_ms < at_ms
                    || expected.input != input
                {
                    self.wrong(
                        "S1 replay",
                        format!("{attempt} found {value} at {key}, which does not hold it"),
                    );
                }
            }
            StoreEffect::Uncertain { holder } => self.found_uncertain(key, holder),
            StoreEffect::Renewed { lease_ms } => {
                let expected = self.expected(key);
                if expected.status == ExpectedStatus::Held {
                    expected.extend(at_ms + lease_ms);
                }
                self.must_hold(is_holder, key, attempt);
            }
            StoreEffect::Pinned { value, retention_ms } => {
                self.must_hold(is_holder, key, attempt);
                let made = self.run_of(attempt).is_some_and(|run| run.has_happened);
                let is_its_own = self.run_of.get(attempt.index()).copied().flatten() == Some(value);
                if !made || !is_its_own {
                    self.wrong("S3 stored truth", format!("{attempt} pinned {value}, which it did not make"));
                }
                self.pin(key, value, retention_ms);
            }
            StoreEffect::Released => {
                self.must_hold(is_holder, key, attempt);
                let may = match self.run_of(attempt) {
                    Some(run) => run.ended == Some(RunEnd::Retry),
                    None => self.expected(key).may_be_cancelled(attempt, false),
                };
                if !may {
                    self.wrong(
                        "S8 release",
                        format!(
                            "{attempt} released {key} though its run, or the one before, may have happened"
                        ),
                    );
                }
                self.free(key, attempt);
            }
            StoreEffect::Abandoned => {
                self.must_hold(is_holder, key, attempt);
                let may = match self.run_of(attempt) {
                    Some(run) => matches!(run.ended, Some(RunEnd::Panic | RunEnd::Unknown)),
                    None => self.expected(key).may_be_cancelled(attempt, true),
                };
                if !may {
                    self.wrong(
                        "S8 abandon",
                        format!("{attempt} abandoned {key} though its outcome was known"),
                    );
                }
                let expected = self.expected(key);
                if expected.status == ExpectedStatus::Held {
                    expected.status = ExpectedStatus::Uncertain;
                }
            }
            StoreEffect::Settled { of, value, retention_ms } => {
                if is_holder {
                    return;
                }
                let expected = self.expected(key);
                let was_uncertain = expected.status == ExpectedStatus::Uncertain || expected.is_lapsed(at_ms);
                if !was_uncertain || expected.holder != Some(of) {
                    self.wrong("S7 settle", format!("{key} was settled though {of} was not uncertain"));
                }
                self.expected(key).holder = Some(attempt);
                match value {
                    Some(value) => {
                        if !self.runs.get(value.index()).is_some_and(|run| run.has_happened) {
                            self.wrong(
                                "S3 stored truth",
                                format!("{value} was settled and never took effect"),
                            );
                        }
                        self.pin(key, value, retention_ms);
                    }
                    None => self.free(key, of),
                }
            }
            StoreEffect::Lost | StoreEffect::NotSettled => {}
        }
    }

    /// A new attempt acquired the key: it must have been free.
    fn changes_hands(&mut self, key: KeyId, attempt: AttemptId, number: u32, on_lapse: OnLapse) {
        let at_ms = self.at_ms;
        let expected = self.expected(key);
        let (holder, before) = (expected.holder, expected.number);
        let is_lapsed = expected.is_lapsed(at_ms);
        let is_free = expected.status == ExpectedStatus::Free;
        let is_takeover =
            (is_lapsed || expected.status == ExpectedStatus::Uncertain) && on_lapse == OnLapse::Rerun;
        let is_new = number == 1 && expected.may_be_new(at_ms);
        if !(is_new || (is_free || is_takeover) && number == before + 1) {
            self.wrong("S7 fence", format!("{key} went from {holder:?} to {attempt}, number {number}"));
        }
        self.expected(key).is_takeover = is_takeover && !is_new;
        if is_lapsed && !is_new {
            self.was_neglected(key);
        }
    }

    fn found_uncertain(&mut self, key: KeyId, holder: AttemptId) {
        let at_ms = self.at_ms;
        let expected = self.expected(key);
        if expected.is_lapsed(at_ms) {
            expected.status = ExpectedStatus::Uncertain;
            self.was_neglected(key);
        } else if expected.status != ExpectedStatus::Uncertain || expected.holder != Some(holder) {
            self.wrong("S7 uncertain", format!("{key} was reported as uncertain while it was not"));
        }
    }

    /// A lease lapsed: its owner must have had a fault.
    fn was_neglected(&mut self, key: KeyId) {
        let expected = self.expected(key);
        let (Some(owner), claimed_ms) = (expected.owner, expected.claimed_ms) else { return };
        if self.neglects_until[owner.index()] < claimed_ms.max(1) {
            self.wrong("P2 undisturbed", format!("the lease of {key} lapsed without a fault of {owner}"));
        }
    }

    fn must_hold(&mut self, is_holder: bool, key: KeyId, attempt: AttemptId) {
        if !is_holder {
            self.wrong("S7 fence", format!("{attempt} changed {key} without holding it"));
        }
    }

    fn pin(&mut self, key: KeyId, value: RunId, retention_ms: u64) {
        let at_ms = self.at_ms;
        let expected = self.expected(key);
        match expected.status {
            ExpectedStatus::Pinned(before) if before == value => return,
            ExpectedStatus::Pinned(before) => {
                self.wrong("S1 final", format!("{key} held {before} and was pinned again with {value}"));
            }
            _ => {}
        }
        let expected = self.expected(key);
        let until_ms = at_ms + retention_ms;
        expected.status = ExpectedStatus::Pinned(value);
        expected.ends_ms = until_ms;
        expected.pins.push(Pin { value, until_ms, stepped_ms: 0 });
    }

    fn free(&mut self, key: KeyId, attempt: AttemptId) {
        let at_ms = self.at_ms;
        let expected = self.expected(key);
        if expected.status != ExpectedStatus::Free {
            expected.status = ExpectedStatus::Free;
            expected.ends_ms = at_ms + millis(TOMBSTONE_RETENTION);
        }
        expected.released.push(attempt);
    }
}
