//! A bounded map that drops the least recently used entries. It has two generations: when the young one is full it
//! becomes the old one, and the previous old one is dropped. No entry is searched for or moved in bulk.

use std::hash::Hash;

use hashbrown::HashMap;

#[derive(Debug)]
pub(super) struct RecentMap<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    generation_max: usize,
}

impl<K: Eq + Hash, V: Default> RecentMap<K, V> {
    /// At most `entries_max` entries. At least half as many are kept.
    pub(super) fn new(entries_max: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), generation_max: (entries_max / 2).max(1) }
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.young.get(key).or_else(|| self.old.get(key))
    }

    /// The mutable value of the key, created if it is missing.
    pub(super) fn entry(&mut self, key: K) -> &mut V {
        let known = self.old.remove(&key);
        if self.young.len() >= self.generation_max && !self.young.contains_key(&key) {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        self.young.entry(key).or_insert_with(|| known.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests;
