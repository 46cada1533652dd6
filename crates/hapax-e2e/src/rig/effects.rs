//! [`EffectLog`]: what a service did and answered, by key. No sidecar can change it.

use std::collections::HashMap;

use parking_lot::Mutex;

/// What happened to one key.
#[derive(Clone, Default, Debug)]
pub(crate) struct KeyEffects<A> {
    /// How often the operation took effect.
    pub(crate) effects: u64,
    /// What the service answered, in order.
    pub(crate) answers: Vec<A>,
}

/// The effects and answers of all keys.
#[derive(Default, Debug)]
pub(crate) struct EffectLog<A> {
    keys: Mutex<HashMap<u64, KeyEffects<A>>>,
}

impl<A: Clone + Default> EffectLog<A> {
    /// Adds an effect. Returns how many there are of the key.
    pub(crate) fn add_effect(&self, key: u64) -> u64 {
        let mut keys = self.keys.lock();
        let effects = &mut keys.entry(key).or_default().effects;
        *effects += 1;
        *effects
    }

    /// Adds an answer.
    pub(crate) fn add_answer(&self, key: u64, answer: A) {
        self.keys.lock().entry(key).or_default().answers.push(answer);
    }

    /// What happened to a key.
    pub(crate) fn of(&self, key: u64) -> KeyEffects<A> {
        self.keys.lock().get(&key).cloned().unwrap_or_default()
    }

    /// Replaces what is known of a key: for planted defects.
    pub(crate) fn falsify(&self, key: u64, effects: KeyEffects<A>) {
        self.keys.lock().insert(key, effects);
    }

    /// The keys whose operation took effect more than once.
    pub(crate) fn doubles(&self) -> Vec<String> {
        let keys = self.keys.lock();
        let doubles = keys.iter().filter(|(_, found)| found.effects > 1);
        doubles.map(|(key, found)| format!("key {key} took effect {} times", found.effects)).collect()
    }
}
