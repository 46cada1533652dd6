//! Kills in every disk call of the first opening of a store, one after the other.
//!
//! No operation can be lost yet, but the next process must be able to open the directory without a repair.

use anyhow::Result;
use hapax_testkit::Random;

use super::event::ChildEvent;
use super::image::{Disk, read_trace};
use super::rig::{CrashReport, CrashRig};
use super::shim::{CallPoint, DiskFaults, KillAt};

/// Kills a child before, in the middle of and after each disk call of opening a new store, until the store opens; then
/// loses the power after each of these calls.
pub fn every_call_of_opening(rig: &CrashRig, random: &mut Random) -> Result<CrashReport> {
    let mut report = CrashReport::default();
    for point in [CallPoint::Before, CallPoint::Torn, CallPoint::After] {
        let mut call = 1;
        while !opens_before(rig, KillAt { call, point }, &mut report)? {
            call += 1;
        }
    }
    lose_power_while_opening(rig, random, &mut report)?;
    Ok(report)
}

/// Whether a child opens its store before it is killed. If not, checks the directory that it left.
fn opens_before(rig: &CrashRig, kill: KillAt, report: &mut CrashReport) -> Result<bool> {
    let mut tracked = rig.track_new_dir()?;
    let child = rig.start(0, tracked.path(), &DiskFaults { kill: Some(kill), ..DiskFaults::default() })?;
    let opened = child.events_until_ready()?.contains(&ChildEvent::Ready);
    child.kill()?;
    if !opened {
        report.kills += 1;
        let faults = report.lost.len();
        rig.check(0, &mut tracked, report)?;
        report.lost[faults..].iter_mut().for_each(|fault| *fault = format!("opening, {kill:?}: {fault}"));
    }
    Ok(opened)
}

fn lose_power_while_opening(rig: &CrashRig, random: &mut Random, report: &mut CrashReport) -> Result<()> {
    let tracked = rig.track_new_dir()?;
    let trace = tracked.path().with_extension("trace");
    let mut disk = Disk::load(tracked.path())?;
    let child =
        rig.start(0, tracked.path(), &DiskFaults { trace: Some(trace.clone()), ..DiskFaults::default() })?;
    child.events_until_ready()?;
    child.kill()?;
    let mut expected = tracked.expected.clone();
    for (call, event) in read_trace(&trace, &tracked.path().canonicalize()?)?.iter().enumerate() {
        if expected.is_busy() {
            break;
        }
        disk.apply(event, random);
        expected.apply_output(event)?;
        let mut tracked = rig.track_new_dir()?;
        tracked.expected = expected.clone();
        disk.lose_power(tracked.path(), random)?;
        let faults = report.lost.len();
        rig.check(0, &mut tracked, report)?;
        report.lost[faults..]
            .iter_mut()
            .for_each(|fault| *fault = format!("opening, power loss after {call}: {fault}"));
    }
    Ok(std::fs::remove_file(trace)?)
}
