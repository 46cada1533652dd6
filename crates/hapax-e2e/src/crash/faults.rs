//! Disks that fail and processes that live on: a sync that fails, a disk that is full for a while.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::image::{Disk, read_journal};
use super::note::Note;
use super::rig::{Report, Rig};
use super::seed::Seed;
use super::shim::Faults;

/// How long a child may take to show what is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Acts that prove that a store works: far more than can be under way at once.
const ENOUGH: u64 = 300;

/// What came of a failing disk.
#[derive(Clone, Debug, Default)]
pub struct Faulted {
    /// Acts acknowledged before the fault.
    pub done_before: u64,
    /// Acts acknowledged after the fault was over.
    pub done_after: u64,
    /// Acts that were certainly not applied, by the kind of the store's error.
    pub refused: BTreeMap<String, u64>,
    /// Acts of which the store did not know whether they were applied.
    pub unknown: u64,
    /// What the directory held afterwards.
    pub report: Report,
}

/// Fails one sync with EIO in the middle of the work; then the power fails too, so that what the failed sync left
/// in doubt is really in doubt.
pub fn sync_failure(rig: &Rig, round: u64, seed: &mut Seed) -> Result<Faulted> {
    let mut life = rig.begin_life()?;
    let journal = life.path().with_extension("journal");
    // Opening a fresh store takes a handful of syncs; the one that fails is one of the work's.
    let eio_at = Some(40 + seed.below(60));
    let faults = Faults { eio_at, journal: Some(journal.clone()), ..Faults::default() };
    let before = Disk::load(life.path())?;
    let child = rig.start(round, life.path(), &faults)?;
    let mut faulted = Faulted::default();
    let deadline = Instant::now() + PATIENCE;
    // A task ends when it is told that the store has stopped; with the last of them there is nothing more to see.
    let mut stopped = 0;
    child.notes_until(deadline, |note| {
        faulted.count(note, |faulted| &mut faulted.done_before);
        stopped += u64::from(matches!(note, Note::Refused(_, how) if how == "stopped"));
        stopped == rig.tasks()
    })?;
    child.kill()?;

    let entries = read_journal(&journal, &life.path().canonicalize()?)?;
    std::fs::remove_file(journal)?;
    life = rig.begin_life()?;
    let mut disk = before;
    for entry in &entries {
        disk.play(entry, seed);
        life.ledger.read(entry)?;
    }
    disk.lose_power(life.path(), seed)?;
    rig.check(round, &mut life, &mut faulted.report)?;
    Ok(faulted)
}

/// Lets the disk be full for a while in the middle of the work.
pub fn full_disk(rig: &Rig, round: u64) -> Result<Faulted> {
    let mut life = rig.begin_life()?;
    let full = life.path().with_extension("full");
    let faults = Faults { full_while: Some(full.clone()), ..Faults::default() };
    let child = rig.start(round, life.path(), &faults)?;
    let mut faulted = Faulted::default();
    let deadline = Instant::now() + PATIENCE;

    let mut notes = child.notes_until(deadline, |note| {
        faulted.count(note, |faulted| &mut faulted.done_before);
        faulted.done_before == ENOUGH
    })?;
    std::fs::write(&full, "")?;
    notes.extend(child.notes_until(deadline, |note| {
        faulted.count(note, |faulted| &mut faulted.done_before);
        faulted.refused.values().sum::<u64>() + faulted.unknown >= ENOUGH
    })?);
    std::fs::remove_file(&full)?;
    notes.extend(child.notes_until(deadline, |note| {
        faulted.count(note, |faulted| &mut faulted.done_after);
        faulted.done_after == ENOUGH
    })?);
    notes.extend(child.kill()?.0);

    notes.iter().for_each(|note| life.ledger.note(note));
    rig.check(round, &mut life, &mut faulted.report)?;
    Ok(faulted)
}

impl Faulted {
    fn count(&mut self, note: &Note, done: impl FnOnce(&mut Self) -> &mut u64) {
        match note {
            Note::Done(_) => *done(self) += 1,
            Note::Refused(_, how) => *self.refused.entry(how.clone()).or_default() += 1,
            Note::Unknown(_) => self.unknown += 1,
            Note::Ready | Note::Begin(_) | Note::Wrong(..) => {}
        }
    }
}
