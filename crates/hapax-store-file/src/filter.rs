//! [`Filter`]: what the index in the database certainly does not know.
//!
//! Most of what is claimed is new. To find that out in the index takes a walk through pages that are in no cache, and
//! from the disk where they are not in memory. The filter knows it from a few bits for each entry. It may take a hash for
//! known that is not, and then the index is asked; it never takes one for unknown that is in the index.
//!
//! A store that has entries from an earlier life is looked through first, piece by piece, by those who read. Until that
//! is done, the index is asked. What is written to it meanwhile is noted beside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rusqlite::Connection;

use crate::leaf::{self, Hash};
use crate::queue::Queue;
use crate::reader::Read;

/// How many entries a filter takes at most; that is 32 MiB. A store with more than half as many does without.
const ENTRIES_MAX: usize = 1 << 24;
/// How many leaves of the index are looked at together. Others read in between.
const PIECE: u32 = 100;

/// Words in a block, which is what a processor fetches at once: all bits of an entry are in one block.
const WORDS: usize = 8;
/// Bits of an entry, and how many of a hash's bits say which one.
const BITS: u32 = 6;
const BIT_WIDTH: u32 = 9;
/// Entries for each block: with this many, one of 200 unknown hashes is taken for known.
const ENTRIES_A_BLOCK: usize = 40;
/// Blocks of the first level: 128 KiB, some 80,000 entries.
const BLOCKS_FIRST: usize = 1 << 11;

/// The writer's own.
#[derive(Debug)]
pub(crate) struct Filter {
    entries_max: usize,
    /// At least all that is in the index; none where that is not known.
    whole: Option<Seen>,
    /// What was written to the index since somebody began to look through it.
    look: Option<(Seen, Arc<Look>)>,
    /// Those who can look through the index.
    readers: Option<Arc<Queue<Read>>>,
}

/// What came of looking through the index.
#[derive(Debug, Default)]
struct Look {
    is_over: AtomicBool,
    /// None where it could not be read, or has too much.
    found: Mutex<Option<Seen>>,
}

/// Whoever looks. The look is over when this is dropped, also by somebody who could not go on with it.
struct Looking(Arc<Look>);

impl Looking {
    fn end(self, found: Seen) {
        *self.0.found.lock() = Some(found);
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Release);
    }
}

impl Default for Filter {
    fn default() -> Self {
        Self::with_room_for(ENTRIES_MAX)
    }
}

impl Filter {
    pub(crate) fn with_room_for(entries_max: usize) -> Self {
        Self { entries_max, whole: None, look: None, readers: None }
    }

    /// Begins to find out what is in the index, with the help of those who read.
    pub(crate) fn begin(&mut self, readers: Arc<Queue<Read>>) {
        self.readers = Some(readers);
        self.look_through();
    }

    /// Whether the index may have an entry with this hash.
    pub(crate) fn may_hold(&mut self, hash: &Hash) -> bool {
        if self.look.as_ref().is_some_and(|(_, look)| look.is_over.load(Ordering::Acquire)) {
            self.end_look();
        }
        self.whole.as_ref().is_none_or(|whole| whole.may_hold(hash))
    }

    /// Notes what is being written to the index.
    pub(crate) fn add(&mut self, hash: &Hash) {
        if let Some((since, _)) = &mut self.look {
            since.add(hash);
        }
        if let Some(whole) = &mut self.whole {
            whole.add(hash);
        }
    }

    /// Starts again where there is too much in it: a filter never forgets, and much of it may be gone from the index.
    /// All that was added must be in the index for others to see, or they would not find it there.
    pub(crate) fn renew_if_full(&mut self) {
        if self.whole.as_ref().is_some_and(|whole| whole.count >= self.entries_max) {
            self.whole = None;
            self.look_through();
        }
    }

    fn look_through(&mut self) {
        if let Some(readers) = &self.readers {
            let look = Arc::new(Look::default());
            self.look = Some((Seen::default(), Arc::clone(&look)));
            look_on(Arc::clone(readers), i64::MIN, Seen::default(), Looking(look), self.entries_max / 2);
        }
    }

    fn end_look(&mut self) {
        if let Some((since, look)) = self.look.take()
            && let Some(mut found) = look.found.lock().take()
        {
            found.join(since);
            self.whole = Some(found);
        }
    }
}

/// Looks at the leaves from `from` on, and has those behind them looked at next.
fn look_on(readers: Arc<Queue<Read>>, from: i64, mut seen: Seen, looking: Looking, entries_max: usize) {
    let others = Arc::clone(&readers);
    let read = Read::of(move |connection| match seen.add_from(connection, from) {
        // Too much, or damaged: then the index is asked, and says so itself.
        Err(_) => {}
        Ok(_) if seen.count > entries_max => {}
        Ok(None) => looking.end(seen),
        Ok(Some(next)) => look_on(others, next, seen, looking, entries_max),
    });
    // Where nobody takes it, the look ends with it.
    let _ = readers.push(read);
}

/// The most bytes of a filter for so many entries.
pub(crate) fn bytes_max(entries: u64) -> u64 {
    let entries = entries.min(ENTRIES_MAX as u64);
    let (mut room, mut bytes, mut blocks) = (0, 0, BLOCKS_FIRST as u64);
    while room < entries {
        room += blocks * ENTRIES_A_BLOCK as u64;
        bytes += blocks * size_of::<[u64; WORDS]>() as u64;
        blocks *= 2;
    }
    bytes
}

/// A set of hashes that may seem to hold others too.
#[derive(Debug, Default)]
struct Seen {
    /// All but the last are full, or take no more. Each further one is twice as large as the one before.
    levels: Vec<Level>,
    count: usize,
}

#[derive(Debug)]
struct Level {
    blocks: Box<[[u64; WORDS]]>,
    room: usize,
}

impl Seen {
    fn add(&mut self, hash: &Hash) {
        // A failed commit is tried again with the same entries.
        if self.may_hold(hash) {
            return;
        }
        if self.levels.last().is_none_or(|level| level.room == 0) {
            let blocks = self.levels.last().map_or(BLOCKS_FIRST, |full| 2 * full.blocks.len());
            let blocks = vec![[0; WORDS]; blocks].into_boxed_slice();
            self.levels.push(Level { room: blocks.len() * ENTRIES_A_BLOCK, blocks });
        }
        let level = self.levels.last_mut().expect("there is one now");
        level.room -= 1;
        self.count += 1;
        let (place, bits) = place_and_bits(hash);
        let block = place & (level.blocks.len() - 1);
        for (word, mask) in masks(bits) {
            level.blocks[block][word] |= mask;
        }
    }

    fn may_hold(&self, hash: &Hash) -> bool {
        let (place, bits) = place_and_bits(hash);
        self.levels.iter().any(|level| {
            let block = &level.blocks[place & (level.blocks.len() - 1)];
            masks(bits).all(|(word, mask)| block[word] & mask != 0)
        })
    }

    /// Adds what is in the index from the leaf at `from` on, up to a piece of it; where the next piece begins, if there
    /// is one. Leaves prove themselves and follow each other without a gap, so none of their entries is missing.
    fn add_from(&mut self, connection: &Connection, from: i64) -> rusqlite::Result<Option<i64>> {
        leaf::each(connection, from, PIECE, |leaf| {
            leaf.entries().iter().for_each(|entry| self.add(&entry.hash()));
        })
    }

    fn join(&mut self, other: Self) {
        self.count += other.count;
        self.levels.splice(0..0, other.levels);
    }
}

/// Two numbers that know nothing of each other. A hash is random; its first half may be that of another one's.
fn place_and_bits(hash: &Hash) -> (usize, u64) {
    let half = |at: usize| u64::from_le_bytes(std::array::from_fn(|n| hash[at + n]));
    let (first, second) = (half(0), half(8));
    ((first ^ second) as usize, first.rotate_left(32).wrapping_add(second))
}

fn masks(bits: u64) -> impl Iterator<Item = (usize, u64)> {
    (0..BITS).map(move |n| {
        let bit = bits >> (n * BIT_WIDTH) & ((1 << BIT_WIDTH) - 1);
        ((bit / 64) as usize, 1 << (bit % 64))
    })
}

#[cfg(test)]
mod tests;
