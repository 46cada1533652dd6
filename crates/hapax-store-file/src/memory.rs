//! An estimate of a store's memory, for capacity planning.

use crate::memtable::ENTRIES_KEPT;
use crate::{reader, schema};

/// What an entry of the memtable takes, without its record: 40 bytes in a tree that is half full at worst.
const MEMTABLE_ENTRY_BYTES: u64 = 96;

/// The most memory, in bytes, that an owner takes for a store with so many records in a database of so many bytes. Calls in
/// flight, the operating system's cache of the files, and the engine's cache of finished records come on top.
pub fn memory_bytes_max(records: u64, database_bytes: u64) -> u64 {
    let caches = schema::cache_bytes_max(reader::THREADS as u64).min(database_bytes);
    let memtable = records.min(ENTRIES_KEPT as u64).saturating_mul(MEMTABLE_ENTRY_BYTES);
    caches.saturating_add(memtable)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn caches_are_no_larger_than_the_database() {
        assert!(memory_bytes_max(0, 0) == 0);
        assert!(memory_bytes_max(1000, MIB) < 2 * MIB);
        let usual = memory_bytes_max(1_000_000, 1 << 30);
        assert!((70 * MIB..76 * MIB).contains(&usual), "{usual}");
        let most = memory_bytes_max(u64::MAX, u64::MAX);
        assert_eq!(most, usual);
    }
}
