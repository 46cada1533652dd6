//! Disk faults that the process survives: a sync that fails, a disk that is full for a while.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use hapax_testkit::Random;

use super::event::ChildEvent;
use super::image::{Disk, read_trace};
use super::rig::{CrashReport, CrashRig};
use super::shim::DiskFaults;

/// How long a child may take to print the awaited events.
const PATIENCE: Duration = Duration::from_secs(30);

/// Operations that show that a store works: far more than can be in flight at a time.
const ENOUGH: u64 = 300;

/// What a disk fault led to.
#[derive(Clone, Debug, Default)]
pub struct DiskFaultReport {
    /// Operations acknowledged before the fault.
    pub done_before: u64,
    /// Operations acknowledged after the fault was over.
    pub done_after: u64,
    /// Operations that were not applied, by the kind of the store's error.
    pub refused: BTreeMap<String, u64>,
    /// Operations that may have been applied.
    pub unknown: u64,
    /// The check of the directory afterwards.
    pub check: CrashReport,
}

/// Fails one sync with EIO under load and then loses the power, so that the disk may or may not hold what the failed
/// sync covered.
pub fn sync_failure(rig: &CrashRig, round: u64, random: &mut Random) -> Result<DiskFaultReport> {
    let mut tracked = rig.track_new_dir()?;
    let trace = tracked.path().with_extension("trace");
    // Opening a fresh store takes a handful of syncs; the one that fails is one of the work's.
    let eio_at = Some(40 + random.below(60));
    let faults = DiskFaults { eio_at, trace: Some(trace.clone()), ..DiskFaults::default() };
    let before = Disk::load(tracked.path())?;
    let child = rig.start(round, tracked.path(), &faults)?;
    let mut report = DiskFaultReport::default();
    let deadline = Instant::now() + PATIENCE;
    // Each task ends with its first refusal as stopped.
    let mut stopped = 0;
    child.events_until(deadline, |event| {
        report.count(event, |report| &mut report.done_before);
        stopped += u64::from(matches!(event, ChildEvent::Refused(_, how) if how == "stopped"));
        stopped == rig.tasks()
    })?;
    child.kill()?;

    let events = read_trace(&trace, &tracked.path().canonicalize()?)?;
    std::fs::remove_file(trace)?;
    tracked = rig.track_new_dir()?;
    let mut disk = before;
    for event in &events {
        disk.apply(event, random);
        tracked.expected.apply_output(event)?;
    }
    disk.lose_power(tracked.path(), random)?;
    rig.check(round, &mut tracked, &mut report.check)?;
    Ok(report)
}

/// Fills the disk for a while under load.
pub fn full_disk(rig: &CrashRig, round: u64) -> Result<DiskFaultReport> {
    let mut tracked = rig.track_new_dir()?;
    let full = tracked.path().with_extension("full");
    let faults = DiskFaults { full_while: Some(full.clone()), ..DiskFaults::default() };
    let child = rig.start(round, tracked.path(), &faults)?;
    let mut report = DiskFaultReport::default();
    let deadline = Instant::now() + PATIENCE;

    let mut events = child.events_until(deadline, |event| {
        report.count(event, |report| &mut report.done_before);
        report.done_before == ENOUGH
    })?;
    std::fs::write(&full, "")?;
    events.extend(child.events_until(deadline, |event| {
        report.count(event, |report| &mut report.done_before);
        report.refused.values().sum::<u64>() + report.unknown >= ENOUGH
    })?);
    std::fs::remove_file(&full)?;
    events.extend(child.events_until(deadline, |event| {
        report.count(event, |report| &mut report.done_after);
        report.done_after == ENOUGH
    })?);
    events.extend(child.kill()?.0);

    events.iter().for_each(|event| tracked.expected.apply(event));
    rig.check(round, &mut tracked, &mut report.check)?;
    Ok(report)
}

impl DiskFaultReport {
    fn count(&mut self, event: &ChildEvent, done: impl FnOnce(&mut Self) -> &mut u64) {
        match event {
            ChildEvent::Done(_) => *done(self) += 1,
            ChildEvent::Refused(_, how) => *self.refused.entry(how.clone()).or_default() += 1,
            ChildEvent::Unknown(_) => self.unknown += 1,
            ChildEvent::Ready | ChildEvent::Begin(_) | ChildEvent::Wrong(..) => {}
        }
    }
}
