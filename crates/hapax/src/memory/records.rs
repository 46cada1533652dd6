//! The records of one shard, indexed by id.

use std::hash::{BuildHasher, Hasher};
use std::mem;
use std::sync::LazyLock;

use hapax_core::{Nonce, Record, RecordId};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// Records by id. A record contains its id, so the table holds only the id's hash: it is small and stays in the
/// processor's cache when the records themselves do not.
#[derive(Default)]
pub(super) struct RecordTable {
    table: HashTable<(u64, Box<Record>)>,
    hashes: IdState,
}

impl RecordTable {
    pub(super) fn get(&self, id: &RecordId) -> Option<&Record> {
        let hash = self.hashes.hash_one(id);
        self.table.find(hash, has_id(hash, id)).map(|(_, record)| &**record)
    }

    /// Replaces the record with its id, which is returned.
    pub(super) fn insert(&mut self, record: Box<Record>) -> Option<Box<Record>> {
        let id = record.key.id;
        let hash = self.hashes.hash_one(id);
        match self.table.entry(hash, has_id(hash, &id), |(hash, _)| *hash) {
            Entry::Occupied(mut place) => Some(mem::replace(&mut place.get_mut().1, record)),
            Entry::Vacant(place) => {
                place.insert((hash, record));
                None
            }
        }
    }

    pub(super) fn remove(&mut self, id: &RecordId) -> Option<Box<Record>> {
        let hash = self.hashes.hash_one(id);
        let place = self.table.find_entry(hash, has_id(hash, id)).ok()?;
        let ((_, record), _) = place.remove();
        Some(record)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Record> {
        self.table.iter().map(|(_, record)| &**record)
    }
}

fn has_id(hash: u64, id: &RecordId) -> impl Fn(&(u64, Box<Record>)) -> bool {
    move |(other, record)| *other == hash && record.key.id == *id
}

/// Hashes ids, which are hashes already: eight of their bytes, mixed with a secret so that clients cannot choose keys
/// that collide.
#[derive(Clone)]
pub(super) struct IdState(u64);

pub(super) struct IdHasher(u64);

impl Default for IdState {
    fn default() -> Self {
        static SECRET: LazyLock<u64> = LazyLock::new(|| {
            let random = Nonce::random();
            random.as_bytes()[..8].iter().fold(0, |secret, byte| secret << 8 | u64::from(*byte))
        });
        Self(*SECRET)
    }
}

impl BuildHasher for IdState {
    type Hasher = IdHasher;

    fn build_hasher(&self) -> IdHasher {
        IdHasher(self.0)
    }
}

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for eight in bytes.chunks_exact(8).skip(1).take(1) {
            self.0 ^= eight.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        }
    }

    fn write_usize(&mut self, _length: usize) {}

    fn finish(&self) -> u64 {
        // Folds both halves of a product with an odd constant, so that every bit of the id affects every bit.
        let product = u128::from(self.0) * 0x9E37_79B9_7F4A_7C15;
        (product >> 64) as u64 ^ product as u64
    }
}

#[cfg(test)]
mod tests {
    use hapax_core::{Fence, Fingerprint, Scope, ScopedKey, Status, Timestamp};

    use super::*;

    fn record(id: u8, attempt: u32) -> Box<Record> {
        let mut bytes = [7; 32];
        bytes[31] = id;
        Box::new(Record {
            key: ScopedKey { scope: Scope::new("charge"), id: RecordId::from_bytes(bytes) },
            fingerprint: Fingerprint::empty(),
            fence: Fence { nonce: Nonce::random(), attempt },
            takeovers: 0,
            status: Status::InProgress { lease_until: Timestamp::default() },
            created_at: Timestamp::default(),
            updated_at: Timestamp::default(),
            expires_at: Timestamp::default(),
        })
    }

    #[test]
    fn ids_with_equal_hashes_are_distinct() {
        let mut records = RecordTable::default();
        let [a, b] = [1, 2].map(|id| record(id, 1).key.id);
        assert_eq!(records.hashes.hash_one(a), records.hashes.hash_one(b));
        assert!(records.insert(record(1, 1)).is_none());
        assert!(records.get(&b).is_none());
        assert!(records.insert(record(2, 5)).is_none());

        let before = records.insert(record(1, 2));

        assert_eq!(before.map(|record| record.fence.attempt), Some(1));
        assert_eq!(records.get(&a).map(|record| record.fence.attempt), Some(2));
        assert_eq!(records.remove(&a).map(|record| record.fence.attempt), Some(2));
        assert!(records.remove(&a).is_none());
        assert_eq!(records.iter().map(|record| record.fence.attempt).collect::<Vec<_>>(), [5]);
    }
}
