//! One attempt at an event. The only file of the consumer that claims, runs and records; what is to be recorded is
//! decided by [`decide`].

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

mod conclude;
mod redriven;

use hapax_core::{Class, Fingerprint, Key, Nonce, OnLapse, RecordId, Recorded};

use self::conclude::Conclude;
use super::consumer::{Consumer, DeadLetters};
use super::dead_letter::{DeadReason, RedriveHeader};
use super::decide::{Decision, Finding, Write, decide};
use super::event::Event;
use super::handler::HandlerOutcome;
use super::key::EventKey;
use crate::engine::{
    Claimed, Context, Ended, Execution, Finish, Operation, Permit, Question, Reconciled, Refusal,
};

/// An event, and the record that it is processed under.
#[derive(Clone)]
pub(super) struct Keyed {
    pub(super) event: Event,
    pub(super) id: RecordId,
    key: Key,
    fingerprint: Fingerprint,
    destination: Option<Arc<str>>,
    redrive: Option<RedriveHeader>,
    /// The event has no key: this one is random, for its dead letter.
    pub(super) is_unnamed: bool,
}

/// What a handler made: a value for the caller, and what is to be recorded.
pub(super) struct Worked<V> {
    pub(super) value: V,
    pub(super) outcome: HandlerOutcome,
}

/// What an attempt came to.
pub(super) enum Attempted<V> {
    /// The handler ran. The decision was made, and its write is in the store or not.
    Ran { value: V, decision: Decision, is_recorded: bool },
    /// There is an outcome of another attempt. It may have been settled just now.
    Replayed { recorded: Recorded, finding: Finding },
    /// Nothing ran: the attempt comes after all that are allowed. The write of the decision is in the store or not.
    Overdue { decision: Decision, is_recorded: bool },
    /// Nothing ran, or its outcome is not known.
    Refused { refusal: Refusal, finding: Finding },
}

impl<V> Attempted<V> {
    /// Whether the event has a recorded outcome now.
    pub(super) fn is_concluded(&self) -> bool {
        match self {
            Self::Ran { decision, is_recorded, .. } | Self::Overdue { decision, is_recorded } => {
                *is_recorded && matches!(decision.write, Write::Completed | Write::DeadLetter(_))
            }
            Self::Replayed { .. } => true,
            Self::Refused { .. } => false,
        }
    }
}

/// What the reconciler of an operation has found, for after the claim.
#[derive(Default)]
struct Settling {
    has_settled: AtomicBool,
    is_too_large: AtomicBool,
}

impl Consumer {
    /// The event with its key.
    pub(super) fn keyed(&self, event: &Event, destination: Option<&str>) -> Keyed {
        let named = EventKey::of(event, self.unnamed);
        let key = named.as_ref().map_or_else(|_| random_key(), |named| named.key.clone());
        Keyed {
            event: event.clone(),
            id: self.operation(&key, Fingerprint::empty()).id(),
            key,
            fingerprint: event.fingerprint(),
            destination: destination.map(Arc::from),
            redrive: RedriveHeader::of(event),
            is_unnamed: named.is_err(),
        }
    }

    fn operation(&self, key: &Key, fingerprint: Fingerprint) -> Operation {
        Operation::new(self.scope.clone(), key, self.claim_policy())
            .fingerprint(fingerprint)
            .label(self.name())
    }

    fn conclude(&self, keyed: &Keyed) -> Conclude {
        let store_max = self.hapax.store().outcome_bytes_max();
        Conclude {
            keyed: keyed.clone(),
            rules: self.rules,
            result_bytes_max: self.policy.outcome_bytes_max.min(store_max),
            dead_letter_bytes_max: store_max,
        }
    }

    /// Claims the event and runs `work`, or finds out why not.
    pub(super) async fn attempt<V, W, F>(&self, keyed: &Keyed, work: W) -> Attempted<V>
    where
        V: Send + 'static,
        W: FnOnce(Context) -> F + Send + 'static,
        F: Future<Output = Worked<V>> + Send + 'static,
    {
        let permit = match self.claim(keyed).await {
            Ok(permit) => permit,
            Err(attempted) => return attempted,
        };
        let attempt = permit.context().attempt();
        let conclude = self.conclude(keyed);
        if self.rules.is_overdue(attempt) {
            let overdue = decide(Finding::Overdue, &self.rules);
            let (finish, decision) = conclude.dead_or_released(overdue, "", attempt);
            let is_recorded =
                matches!(permit.finish(finish).await, Ok(Execution::Ran { recorded: true, .. }));
            return Attempted::Overdue { decision, is_recorded };
        }
        let run = permit.run(move |context: Context| async move {
            let attempt = context.attempt();
            let Worked { value, outcome } = work(context).await;
            let (finish, decision) = conclude.conclude(outcome, attempt);
            Ended { value: (value, decision), finish }
        });
        match run.await {
            Ok(Execution::Ran { value: (value, decision), recorded }) => {
                Attempted::Ran { value, decision, is_recorded: recorded }
            }
            Ok(Execution::Replayed(recorded)) => {
                let is_success = recorded.class == Class::Success;
                let finding = if is_success { Finding::Completed } else { Finding::Dead };
                Attempted::Replayed { recorded, finding }
            }
            Err(refusal) => {
                let finding = Finding::of_refusal(&refusal, attempt);
                Attempted::Refused { refusal, finding }
            }
        }
    }

    async fn claim<V>(&self, keyed: &Keyed) -> Result<Permit, Attempted<V>> {
        let mut is_redriven =
            keyed.redrive.is_some_and(|header| header.record.is_none_or(|id| id == keyed.id));
        loop {
            let settling = Arc::new(Settling::default());
            match self.hapax.claim(self.settled_when_abandoned(keyed, &settling)).await {
                Ok(Claimed::Run(permit)) => return Ok(permit),
                Ok(Claimed::Replay(recorded)) => {
                    let is_settled_now = settling.has_settled.load(Ordering::Relaxed);
                    let finding = match (recorded.class, is_redriven, is_settled_now) {
                        (Class::Success, ..) => Finding::Completed,
                        (Class::Error, true, _) => Finding::Redriven,
                        (Class::Error, false, true) => Finding::Abandoned,
                        (Class::Error, false, false) => Finding::Dead,
                    };
                    if decide(finding, &self.rules).write != Write::Removed {
                        return Err(Attempted::Replayed { recorded, finding });
                    }
                    // Once: what is found dead again is another dead letter.
                    is_redriven = false;
                    if let Err(error) = self.let_go(keyed).await {
                        let refusal = Refusal::StoreFailedOnKnownKey(error);
                        return Err(Attempted::Refused { refusal, finding: Finding::StoreFailed });
                    }
                }
                Err(refusal) => {
                    let is_too_large = settling.is_too_large.load(Ordering::Relaxed);
                    let finding = match &refusal {
                        Refusal::Uncertain { .. } if is_too_large => Finding::TooLarge { attempt: 1 },
                        refusal => Finding::of_refusal(refusal, 1),
                    };
                    return Err(Attempted::Refused { refusal, finding });
                }
            }
        }
    }

    /// The claim of the event. A record whose owners are gone is settled as a dead letter by it, once no other attempt may
    /// run.
    fn settled_when_abandoned(&self, keyed: &Keyed, settling: &Arc<Settling>) -> Operation {
        let operation = self.operation(&keyed.key, keyed.fingerprint);
        if self.rules.dead_letters == DeadLetters::Broker {
            return operation;
        }
        let (conclude, settling) = (self.conclude(keyed), settling.clone());
        operation.reconcile(move |question: Question| {
            let Decision { write: Write::Settled(reason), .. } = decide(Finding::Abandoned, &conclude.rules)
            else {
                return std::future::ready(Reconciled::Unknown);
            };
            let error = format!("{}: {}", reason.words(), question.reason.words());
            let settled = match conclude.dead_letter(reason, &error, question.fence.attempt) {
                Some(dead_letter) => {
                    settling.has_settled.store(true, Ordering::Relaxed);
                    Reconciled::Applied(dead_letter)
                }
                None => {
                    settling.is_too_large.store(true, Ordering::Relaxed);
                    Reconciled::Unknown
                }
            };
            std::future::ready(settled)
        })
    }

    /// Records a dead letter under a key of its own, because that of the event cannot be used. The id of its record.
    pub(super) async fn set_apart(&self, keyed: &Keyed, reason: DeadReason) -> Result<RecordId, Finding> {
        let key = keyed.key_apart(reason);
        let error = keyed.event.why_unreadable().unwrap_or_default();
        let Some(dead_letter) = self.conclude(keyed).dead_letter(reason, &error, 0) else {
            return Err(Finding::TooLarge { attempt: 1 });
        };
        // Recording it twice is harmless, so a process that died while it did is always replaced.
        let policy = self.claim_policy().on_lapse(OnLapse::Rerun).attempts_max(u32::MAX);
        let operation = Operation::new(self.scope.clone(), &key, policy).fingerprint(keyed.fingerprint);
        let id = operation.id();
        match self.hapax.claim(operation).await {
            Ok(Claimed::Replay(_)) => Ok(id),
            Ok(Claimed::Run(permit)) => match permit.finish(Finish::Pin(dead_letter)).await {
                Ok(Execution::Ran { recorded: true, .. } | Execution::Replayed(_)) => Ok(id),
                Ok(Execution::Ran { recorded: false, .. }) => Err(Finding::Unrecorded),
                Err(refusal) => Err(Finding::of_refusal(&refusal, 1)),
            },
            // This key is derived of everything that counts: a record that cannot be used is not worked around again.
            Err(refusal) => Err(match Finding::of_refusal(&refusal, 1) {
                Finding::Unusable { .. } => Finding::Unsettled,
                finding => finding,
            }),
        }
    }
}

impl Finding {
    /// What a refusal of the engine says about an event.
    fn of_refusal(refusal: &Refusal, attempt: u32) -> Self {
        match refusal {
            Refusal::InProgress { lease_left, .. } => Self::Busy { lease_left: *lease_left },
            Refusal::Mismatch => Self::Unusable { reason: DeadReason::Reused },
            Refusal::Expired => Self::Unusable { reason: DeadReason::Expired },
            Refusal::Unreadable { .. } => Self::Unusable { reason: DeadReason::Unreadable },
            Refusal::Uncertain { .. } => Self::Unsettled,
            Refusal::Panicked { .. } => Self::Unknown { attempt },
            Refusal::Superseded { .. } | Refusal::Deadline { .. } => Self::Unrecorded,
            Refusal::Draining => Self::Draining,
            Refusal::StoreFailed(_) | Refusal::StoreFailedOnKnownKey(_) => Self::StoreFailed,
        }
    }
}

impl Keyed {
    /// The record of the dead letter that the event names, if it is redriven.
    pub(super) fn redrive_record(&self) -> Option<RecordId> {
        self.redrive?.record
    }

    /// The key of a dead letter beside the record that the event's key belongs to.
    fn key_apart(&self, reason: DeadReason) -> Key {
        if self.is_unnamed {
            return self.key.clone();
        }
        let digest: String = self.fingerprint.digest().iter().map(|byte| format!("{byte:02x}")).collect();
        Key::derive(&self.id.to_string(), reason.name(), Some(&serde_json::Value::String(digest)))
            .expect("a string nests no deeper than allowed")
    }
}

fn random_key() -> Key {
    let digits: String = Nonce::random().as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    Key::new(&digits).expect("hexadecimal digits are a key")
}
