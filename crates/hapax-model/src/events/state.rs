//! One state of a consumer's world: the broker, the record, a cache of finished records, the workers and the redriver.

use crate::slot::{DEAD_LETTER, Phase, Slot};

/// The number of messages of an event that the broker may hold over time: published by the producer, then by the redriver.
pub(crate) const COPIES_MAX: usize = 4;
/// The number of workers.
pub(crate) const WORKERS: usize = 2;
/// The tag of the value of a handler that succeeded.
pub(crate) const SUCCESS: u8 = 0;

/// A state of the model.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct State {
    /// The messages, as the broker has them.
    pub copies: [Message; COPIES_MAX],
    /// The record of the event.
    pub slot: Option<Slot>,
    /// The cache in front of the store.
    pub cache: Cached,
    /// Values that a process has read or committed, and may still write to the cache.
    pub unwritten: Values,
    /// Sorted: workers are interchangeable.
    pub workers: [Worker; WORKERS],
    /// The redriver.
    pub redriver: Redriver,
    /// How many messages the producer may still publish.
    pub publications_left: u8,
    /// How many messages the redriver may still publish.
    pub redrives_left: u8,
    /// How many more times an unfinished record may be swept.
    pub sweeps_left: u8,
    /// The input of the properties.
    pub ghost: Ghost,
}

/// One message. The broker may deliver a held message at any time to any worker, also while another has it: a connection
/// was lost, a deadline passed, the broker restarted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Message {
    /// Not published.
    Absent,
    /// Not acknowledged; with the nonce in its header if it was published by a redrive.
    Held { redrives: Option<u8> },
    /// Acknowledged, so the broker has removed it.
    Acknowledged,
}

/// What the cache in front of the store has about the record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Cached {
    /// Nothing.
    Empty,
    /// A finished record with this value.
    Fact(u8),
    /// A tombstone: the record was deleted, and late writers are refused.
    Withheld,
}

/// A set of values: success, dead letter, both or none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub(crate) struct Values {
    pub success: bool,
    pub dead_letter: bool,
}

impl Values {
    /// Whether `value` is in the set.
    pub(crate) fn of(&mut self, value: u8) -> &mut bool {
        if value == DEAD_LETTER { &mut self.dead_letter } else { &mut self.success }
    }

    /// The members.
    pub(crate) fn members(self) -> impl Iterator<Item = u8> {
        let success = self.success.then_some(SUCCESS);
        success.into_iter().chain(self.dead_letter.then_some(DEAD_LETTER))
    }
}

/// A worker of the consumer. A crashed worker is idle.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Worker {
    /// It has no delivery.
    Idle,
    /// It has a delivery in hand.
    Busy(Hand),
}

/// A delivery in a worker's hand.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Hand {
    /// The message.
    pub copy: u8,
    /// The nonce in its header.
    pub redrives: Option<u8>,
    /// The next step.
    pub step: Step,
    /// Whether the dead letter that its header names has been deleted, by this worker or before.
    pub deleted: bool,
    /// Ghost: whether the record was finished at any moment since the delivery.
    pub recorded: bool,
}

/// What a worker does next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Step {
    /// Claim the key; again with the same nonce after a lost answer.
    Claiming { nonce: Option<u8> },
    /// Run the handler.
    Running { nonce: u8, attempt: u8 },
    /// Record how it ended.
    Recording { nonce: u8, end: End },
    /// Settle an uncertain attempt as a dead letter.
    Settling { nonce: u8 },
    /// Put a tombstone into the cache, before the deletion of a dead letter.
    Withholding,
    /// Delete the dead letter that the header names.
    Deleting,
    /// Acknowledge the message.
    Acknowledging,
}

impl Step {
    fn nonce_mut(&mut self) -> Option<&mut u8> {
        match self {
            Self::Claiming { nonce } => nonce.as_mut(),
            Self::Running { nonce, .. } | Self::Recording { nonce, .. } | Self::Settling { nonce } => {
                Some(nonce)
            }
            Self::Withholding | Self::Deleting | Self::Acknowledging => None,
        }
    }
}

/// How an attempt is recorded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum End {
    /// Completed.
    Success,
    /// Failed, with the event: the broker need not keep it.
    DeadLetter,
    /// Released, to be tried again.
    Release,
    /// Uncertain: the handler panicked.
    Abandon,
}

/// The program that sends dead letters again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Redriver {
    /// Nothing to do, or it crashed.
    Idle,
    /// It has read the dead letter of this nonce and publishes its event.
    Publishing { nonce: u8 },
    /// Only with a defect: it deletes the dead letter before it publishes the event.
    Deleting { nonce: u8 },
}

/// Ghost variables: history for the properties, invisible to the system.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub(crate) struct Ghost {
    /// Whether the broker has confirmed a message of the producer.
    pub accepted: bool,
    /// Whether the event has been a dead letter.
    pub was_dead: bool,
    /// Whether a dead letter was deleted by a redrive.
    pub redriven: bool,
    /// Whether a worker has answered from the cache.
    pub answered_from_cache: bool,
    /// Whether an acknowledgement was sent without a finished record since the delivery.
    pub unproven: bool,
}

impl State {
    /// The initial state.
    pub(crate) const fn initial(publications: u8, redrives: u8, sweeps: u8) -> Self {
        Self {
            copies: [Message::Absent; COPIES_MAX],
            slot: None,
            cache: Cached::Empty,
            unwritten: Values { success: false, dead_letter: false },
            workers: [Worker::Idle; WORKERS],
            redriver: Redriver::Idle,
            publications_left: publications,
            redrives_left: redrives,
            sweeps_left: sweeps,
            ghost: Ghost {
                accepted: false,
                was_dead: false,
                redriven: false,
                answered_from_cache: false,
                unproven: false,
            },
        }
    }

    /// The value of the finished record.
    pub(crate) fn finished(&self) -> Option<u8> {
        match self.slot?.phase {
            Phase::Pinned { value } => Some(value),
            _ => None,
        }
    }

    /// Notes for every delivery in hand, and for the dead letter, that the record is finished.
    pub(crate) fn note_finished(&mut self) {
        let Some(value) = self.finished() else { return };
        self.ghost.was_dead |= value == DEAD_LETTER;
        for worker in &mut self.workers {
            if let Worker::Busy(hand) = worker {
                hand.recorded = true;
            }
        }
    }

    /// Whether the broker holds a message.
    pub(crate) fn is_held(&self) -> bool {
        self.copies.iter().any(|copy| matches!(copy, Message::Held { .. }))
    }

    /// Publishes a message; false when there is no room for one more.
    pub(crate) fn publish(&mut self, redrives: Option<u8>) -> bool {
        let free = self.copies.iter_mut().find(|copy| **copy == Message::Absent);
        free.is_some_and(|copy| {
            *copy = Message::Held { redrives };
            true
        })
    }

    /// Every nonce that any component of the system knows.
    fn nonces_mut(&mut self) -> impl Iterator<Item = &mut u8> {
        let stored = self.slot.as_mut().map(|slot| &mut slot.nonce);
        let headers = self.copies.iter_mut().filter_map(|copy| match copy {
            Message::Held { redrives } => redrives.as_mut(),
            Message::Absent | Message::Acknowledged => None,
        });
        let redriver = match &mut self.redriver {
            Redriver::Idle => None,
            Redriver::Publishing { nonce } | Redriver::Deleting { nonce } => Some(nonce),
        };
        let workers = self.workers.iter_mut().flat_map(|worker| match worker {
            Worker::Idle => [None, None],
            Worker::Busy(hand) => [hand.redrives.as_mut(), hand.step.nonce_mut()],
        });
        stored.into_iter().chain(headers).chain(redriver).chain(workers.flatten())
    }

    /// A nonce that no component knows.
    pub(crate) fn fresh_nonce(&mut self) -> u8 {
        self.nonces_mut().map(|nonce| *nonce + 1).max().unwrap_or(0)
    }

    /// Nonces are compared for equality alone, so they are numbered anew in the order in which they occur: without this
    /// there would be no end of states.
    pub(crate) fn normalise(&mut self) {
        self.workers.sort_unstable();
        let mut known: Vec<u8> = Vec::new();
        for nonce in self.nonces_mut() {
            let at = known.iter().position(|other| other == nonce).unwrap_or_else(|| {
                known.push(*nonce);
                known.len() - 1
            });
            *nonce = at as u8;
        }
    }
}
