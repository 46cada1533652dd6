//! The durability of the file store when a process, a disk or the power fails.
//!
//! A child process opens the store, runs claims, renewals, completions and releases in many tasks and prints to a pipe
//! which operations it begins and which were acknowledged. It is killed, the directory is opened again, and every key is
//! compared with these events: an acknowledged operation must be stored, one in flight may or may not be, and no record
//! may be unreadable. Then the store must take new operations, a late completion of an uncertain claim included. A
//! directory goes through several such rounds.
//!
//! # Deaths
//!
//! | death | what it proves |
//! |---|---|
//! | SIGKILL at a random moment | no operation is acknowledged before it was written |
//! | SIGKILL before, in the middle of or after the Nth call to the disk | every partial change is recovered or undone |
//! | power loss | no operation is acknowledged before it was synced |
//!
//! SIGKILL cannot show a missing sync, because the operating system keeps what was written. For the power loss a
//! shim that is preloaded into the child (`shim/disk.c`) traces every write and sync. From the trace the directory is
//! built as a disk could have left it at any moment: everything synced, and any subset of the other sectors.
//! The shim can also fail one sync (EIO) and refuse writes (ENOSPC).
//!
//! The first opening of a store is covered call by call, with a kill in each.
//!
//! # Limits
//!
//! - A new file and a new directory count as durable immediately. Renames and removals do not: those since the last
//!   sync of a directory survive in order, up to a random one.
//! - Sectors of 512 bytes are written whole or not at all, and writing one harms no other.
//! - A disk that acknowledges a sync without doing it is not modelled. No software survives that.
//! - Writes through mapped memory are not seen, nor is a system call that goes past libc. The file store makes
//!   neither, but for SQLite's shared index, which is rebuilt after a crash. (fjall replaces its manifest past
//!   libc, so kills of it can be tested here but power losses cannot.)
//! - The choices follow from the seed; the scheduling of the child's threads does not. A failing round is kept
//!   by its seed and number and may need a few runs to fail again.

pub mod child;
pub mod event;
pub mod expected;
pub mod faults;
pub mod image;
pub mod opening;
pub mod rig;
pub mod shim;
pub mod subject;
pub mod workload;

use hapax_testkit::Random;

pub use self::faults::{DiskFaultReport, full_disk, sync_failure};
pub use self::opening::every_call_of_opening;
pub use self::rig::{CrashReport, CrashRig, Death};
pub use self::subject::Engine;
pub use self::workload::Workload;

/// The default mixture of deaths.
pub fn any_death(random: &mut Random) -> Death {
    match random.below(100) {
        0 => Death::InACheckpoint,
        1..=39 => Death::AnyMoment,
        40..=79 => Death::InACall,
        _ => Death::PowerLoss,
    }
}
