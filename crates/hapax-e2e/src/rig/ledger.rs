//! [`Ledger`]: the keys that were sent, and what callers were answered.

use std::collections::HashMap;
use std::ops::Range;

use parking_lot::Mutex;

/// The keys of a run, and the recorded answers that callers got for them.
#[derive(Debug)]
pub(crate) struct Ledger<A> {
    keys: Range<u64>,
    answers: Mutex<HashMap<u64, Vec<A>>>,
}

impl<A: Clone + PartialEq> Ledger<A> {
    /// A run that sends these keys.
    pub(crate) fn new(keys: Range<u64>) -> Self {
        Self { keys, answers: Mutex::default() }
    }

    /// The keys that were sent.
    pub(crate) fn keys(&self) -> Range<u64> {
        self.keys.clone()
    }

    /// Adds an answer that a caller got. Equal answers of a key are kept once.
    pub(crate) fn add_answer(&self, key: u64, answer: A) {
        let mut answers = self.answers.lock();
        let known = answers.entry(key).or_default();
        if !known.contains(&answer) {
            known.push(answer);
        }
    }

    /// The different answers that callers got for a key, in order.
    pub(crate) fn answers(&self, key: u64) -> Vec<A> {
        self.answers.lock().get(&key).cloned().unwrap_or_default()
    }

    /// The first answer that a caller got for a key.
    pub(crate) fn first_answer(&self, key: u64) -> Option<A> {
        self.answers.lock().get(&key)?.first().cloned()
    }
}
