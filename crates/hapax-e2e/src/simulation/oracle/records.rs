//! The oracle's naive picture of each record, made from what the store applied.

use hapax_core::OnLapse;
use hapax_core::store::TOMBSTONE_RETENTION;

use super::super::clock::millis;
use super::super::event::{AttemptId, Ending, KeyId, ProcessId, RunId, Step};
use super::Oracle;

/// All pictures.
#[derive(Debug, Default)]
pub(super) struct Records {
    by_key: Vec<Picture>,
}

/// What a record must look like.
#[derive(Debug, Default)]
pub(super) struct Picture {
    /// Counts how often the key was new.
    pub(super) life: u32,
    status: Status,
    holder: Option<AttemptId>,
    number: u32,
    input: u8,
    owner: Option<ProcessId>,
    claimed_ms: u64,
    lease_until_ms: u64,
    ends_ms: u64,
    claims: Vec<(AttemptId, u32)>,
    released: Vec<AttemptId>,
    pins: Vec<Pin>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Status {
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
    /// How far the store's clock has jumped since. A process that answers from memory goes by its own clock.
    stepped_ms: u64,
}

impl Records {
    pub(super) fn of(&mut self, key: KeyId) -> &mut Picture {
        if self.by_key.len() <= key.index() {
            self.by_key.resize_with(key.index() + 1, Picture::default);
        }
        &mut self.by_key[key.index()]
    }

    /// The store's clock jumped ahead of everybody else's.
    pub(super) fn stepped(&mut self, store_ms: u64) {
        let pins = self.by_key.iter_mut().flat_map(|picture| &mut picture.pins);
        pins.for_each(|pin| pin.stepped_ms += store_ms);
    }
}

impl Picture {
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
        self.status == Status::Held && self.lease_until_ms <= at_ms
    }

    /// A claim that is kept alive is kept longer, too.
    fn extend(&mut self, lease_until_ms: u64) {
        self.ends_ms += lease_until_ms.saturating_sub(self.lease_until_ms);
        self.lease_until_ms = lease_until_ms;
    }

    /// Whether a claim may find nothing here: there never was anything, or it was due to go.
    fn may_be_new(&self, at_ms: u64) -> bool {
        match self.status {
            Status::Absent => true,
            Status::Held => self.ends_ms <= at_ms && self.lease_until_ms <= at_ms,
            Status::Uncertain | Status::Pinned(_) | Status::Free => self.ends_ms <= at_ms,
        }
    }
}

impl Oracle {
    pub(super) fn applied(&mut self, process: ProcessId, key: KeyId, attempt: AttemptId, step: Step) {
        let at_ms = self.at_ms;
        let is_holder = self.picture(key).holder == Some(attempt);
        match step {
            Step::Acquired { number, lease_ms, uncertain_ms, on_lapse, input } => {
                let picture = self.picture(key);
                if is_holder && picture.status == Status::Held {
                    picture.extend(at_ms + lease_ms);
                    return;
                }
                self.changes_hands(key, attempt, number, on_lapse);
                let picture = self.picture(key);
                if number == 1 {
                    picture.life += 1;
                }
                picture.status = Status::Held;
                picture.holder = Some(attempt);
                picture.number = number;
                picture.input = input;
                picture.owner = Some(process);
                picture.claimed_ms = at_ms;
                picture.lease_until_ms = at_ms + lease_ms;
                picture.ends_ms = at_ms + uncertain_ms;
                picture.claims.push((attempt, number));
            }
            Step::Busy => {
                let picture = self.picture(key);
                let is_busy = picture.status == Status::Held && !picture.is_lapsed(at_ms);
                if !(is_busy || is_holder && picture.status == Status::Free) {
                    self.wrong("S7 busy", format!("{attempt} was told that {key} is busy, and it was not"));
                }
            }
            Step::Mismatch { input } => {
                let picture = self.picture(key);
                if matches!(picture.status, Status::Absent | Status::Free) || picture.input == input {
                    self.wrong(
                        "S7 mismatch",
                        format!("{attempt} asked for the same of {key} and was refused"),
                    );
                }
            }
            Step::Replay { value, input } => {
                let picture = self.picture(key);
                if picture.status != Status::Pinned(value)
                    || picture.ends_ms < at_ms
                    || picture.input != input
                {
                    self.wrong(
                        "S1 replay",
                        format!("{attempt} found {value} at {key}, which does not hold it"),
                    );
                }
            }
            Step::Uncertain { holder } => self.found_uncertain(key, holder),
            Step::Renewed { lease_ms } => {
                let picture = self.picture(key);
                if picture.status == Status::Held {
                    picture.extend(at_ms + lease_ms);
                }
                self.must_hold(is_holder, key, attempt);
            }
            Step::Pinned { value, retention_ms } => {
                self.must_hold(is_holder, key, attempt);
                let made = self.run_of(attempt).is_some_and(|run| run.has_happened);
                let is_its_own = self.run_of.get(attempt.index()).copied().flatten() == Some(value);
                if !made || !is_its_own {
                    self.wrong("S3 stored truth", format!("{attempt} pinned {value}, which it did not make"));
                }
                self.pin(key, value, retention_ms);
            }
            Step::Released => {
                self.must_hold(is_holder, key, attempt);
                let may = self.run_of(attempt).is_none_or(|run| run.ended == Some(Ending::Retry));
                if !may {
                    self.wrong(
                        "S8 release",
                        format!("{attempt} released {key} though its run did not ask for it"),
                    );
                }
                self.free(key, attempt);
            }
            Step::Abandoned => {
                self.must_hold(is_holder, key, attempt);
                let ended = self.run_of(attempt).and_then(|run| run.ended);
                if !matches!(ended, Some(Ending::Panic | Ending::Unknown)) {
                    self.wrong("S8 abandon", format!("{attempt} abandoned {key} while its run could know"));
                }
                let picture = self.picture(key);
                if picture.status == Status::Held {
                    picture.status = Status::Uncertain;
                }
            }
            Step::Settled { of, value, retention_ms } => {
                if is_holder {
                    return;
                }
                let picture = self.picture(key);
                let was_uncertain = picture.status == Status::Uncertain || picture.is_lapsed(at_ms);
                if !was_uncertain || picture.holder != Some(of) {
                    self.wrong("S7 settle", format!("{key} was settled though {of} was not in doubt"));
                }
                self.picture(key).holder = Some(attempt);
                match value {
                    Some(value) => {
                        if !self.runs.get(value.index()).is_some_and(|run| run.has_happened) {
                            self.wrong("S3 stored truth", format!("{value} was settled and never happened"));
                        }
                        self.pin(key, value, retention_ms);
                    }
                    None => self.free(key, of),
                }
            }
            Step::Lost | Step::NotSettled => {}
        }
    }

    /// A claim was given to a new attempt: it must have been free.
    fn changes_hands(&mut self, key: KeyId, attempt: AttemptId, number: u32, on_lapse: OnLapse) {
        let at_ms = self.at_ms;
        let picture = self.picture(key);
        let (holder, before) = (picture.holder, picture.number);
        let is_lapsed = picture.is_lapsed(at_ms);
        let is_free = picture.status == Status::Free;
        let is_takeover = (is_lapsed || picture.status == Status::Uncertain) && on_lapse == OnLapse::Rerun;
        let is_new = number == 1 && picture.may_be_new(at_ms);
        if !(is_new || (is_free || is_takeover) && number == before + 1) {
            self.wrong("S7 fence", format!("{key} went from {holder:?} to {attempt}, number {number}"));
        }
        if is_lapsed && !is_new {
            self.was_neglected(key);
        }
    }

    fn found_uncertain(&mut self, key: KeyId, holder: AttemptId) {
        let at_ms = self.at_ms;
        let picture = self.picture(key);
        if picture.is_lapsed(at_ms) {
            picture.status = Status::Uncertain;
            self.was_neglected(key);
        } else if picture.status != Status::Uncertain || picture.holder != Some(holder) {
            self.wrong("S7 uncertain", format!("{key} was called uncertain while it was not"));
        }
    }

    /// A lease lapsed: something must have gone wrong with its owner.
    fn was_neglected(&mut self, key: KeyId) {
        let picture = self.picture(key);
        let (Some(owner), claimed_ms) = (picture.owner, picture.claimed_ms) else { return };
        if self.neglects_until[owner.index()] < claimed_ms.max(1) {
            self.wrong(
                "P2 undisturbed",
                format!("the lease of {key} lapsed and nothing was wrong with {owner}"),
            );
        }
    }

    fn must_hold(&mut self, is_holder: bool, key: KeyId, attempt: AttemptId) {
        if !is_holder {
            self.wrong("S7 fence", format!("{attempt} changed {key} without holding it"));
        }
    }

    fn pin(&mut self, key: KeyId, value: RunId, retention_ms: u64) {
        let at_ms = self.at_ms;
        let picture = self.picture(key);
        match picture.status {
            Status::Pinned(before) if before == value => return,
            Status::Pinned(before) => {
                self.wrong("S1 final", format!("{key} held {before} and was pinned again with {value}"));
            }
            _ => {}
        }
        let picture = self.picture(key);
        let until_ms = at_ms + retention_ms;
        picture.status = Status::Pinned(value);
        picture.ends_ms = until_ms;
        picture.pins.push(Pin { value, until_ms, stepped_ms: 0 });
    }

    fn free(&mut self, key: KeyId, attempt: AttemptId) {
        let at_ms = self.at_ms;
        let picture = self.picture(key);
        if picture.status != Status::Free {
            picture.status = Status::Free;
            picture.ends_ms = at_ms + millis(TOMBSTONE_RETENTION);
        }
        picture.released.push(attempt);
    }
}
