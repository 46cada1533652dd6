//! A store that is killed before it ever was open: every call to the disk on the way there, one after the other.
//!
//! Nothing can be lost yet. But the next process must find a directory that it can open, without anybody's help.

use anyhow::Result;

use super::image::{Disk, read_journal};
use super::note::Note;
use super::rig::{Report, Rig};
use super::seed::Seed;
use super::shim::{Faults, KillAt, Point};

/// Kills a child in each call of opening a new store, before, in the middle of and after it, until it gets
/// through; then loses the power after each of these calls.
pub fn every_call_of_opening(rig: &Rig, seed: &mut Seed) -> Result<Report> {
    let mut report = Report::default();
    for point in [Point::Before, Point::Torn, Point::After] {
        let mut call = 1;
        while !opens_before(rig, KillAt { call, point }, &mut report)? {
            call += 1;
        }
    }
    lose_power_while_opening(rig, seed, &mut report)?;
    Ok(report)
}

/// Whether a child has its store open before it dies; otherwise what it left is checked.
fn opens_before(rig: &Rig, kill: KillAt, report: &mut Report) -> Result<bool> {
    let mut life = rig.begin_life()?;
    let child = rig.start(0, life.path(), &Faults { kill: Some(kill), ..Faults::default() })?;
    let opened = child.notes_until_ready()?.contains(&Note::Ready);
    child.kill()?;
    if !opened {
        report.kills += 1;
        let faults = report.lost.len();
        rig.check(0, &mut life, report)?;
        report.lost[faults..].iter_mut().for_each(|fault| *fault = format!("opening, {kill:?}: {fault}"));
    }
    Ok(opened)
}

fn lose_power_while_opening(rig: &Rig, seed: &mut Seed, report: &mut Report) -> Result<()> {
    let life = rig.begin_life()?;
    let journal = life.path().with_extension("journal");
    let mut disk = Disk::load(life.path())?;
    let child = rig.start(0, life.path(), &Faults { journal: Some(journal.clone()), ..Faults::default() })?;
    child.notes_until_ready()?;
    child.kill()?;
    let mut ledger = life.ledger.clone();
    for (call, entry) in read_journal(&journal, &life.path().canonicalize()?)?.iter().enumerate() {
        if ledger.is_busy() {
            break;
        }
        disk.play(entry, seed);
        ledger.read(entry)?;
        let mut life = rig.begin_life()?;
        life.ledger = ledger.clone();
        disk.lose_power(life.path(), seed)?;
        let faults = report.lost.len();
        rig.check(0, &mut life, report)?;
        report.lost[faults..]
            .iter_mut()
            .for_each(|fault| *fault = format!("opening, power loss after {call}: {fault}"));
    }
    Ok(std::fs::remove_file(journal)?)
}
