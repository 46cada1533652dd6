//! Whether the file store keeps its word when a process, a disk or the power fails.
//!
//! A real child process opens the store, drives claims, renewals, completions and releases from many tasks and
//! says on a pipe what it begins and what was acknowledged. It is killed, the directory is opened again, and every
//! key is compared with what was said: an acknowledged act must be there, one under way may or may not be, and
//! nothing may be unreadable. Then the store must take new work, a late completion of an uncertain claim
//! included. A directory goes through several such rounds.
//!
//! # Deaths
//!
//! | death | what it shows |
//! |---|---|
//! | SIGKILL at a random moment | nothing is acknowledged before it has left the process |
//! | SIGKILL before, in the middle of or after the Nth call to the disk | every half-done change is recovered or undone |
//! | power loss | nothing is acknowledged before it was synced |
//!
//! SIGKILL cannot show a missing sync, because the operating system keeps what was written. For the power loss a
//! shim under the child (`shim/disk.c`) journals every write and sync. From the journal the directory is built
//! as a disk could have left it at any moment: everything synced, and any subset of the sectors that were not.
//! The shim can also fail one sync (EIO) and refuse writes (ENOSPC).
//!
//! Opening is looked at call by call: a new store is killed in every one of them.
//!
//! # Limits
//!
//! - A new file and a new directory count as durable at once. Renames and removals do not: those since the last
//!   sync of a directory survive in order, up to a random one.
//! - Sectors of 512 bytes are written whole or not at all, and writing one harms no other.
//! - A disk that lies about a sync is not modelled. No software survives that.
//! - Writes through mapped memory are not seen, nor is a system call that goes past libc. The file store makes
//!   neither, but for SQLite's shared index, which is rebuilt after a crash. (fjall replaces its manifest past
//!   libc, so it can be killed here but not be judged by power loss.)
//! - The choices follow from the seed; the scheduling of the child's threads does not. A failing round is kept
//!   by its seed and number and may need a few runs to fail again.

pub mod child;
pub mod faults;
pub mod image;
pub mod ledger;
pub mod note;
pub mod opening;
pub mod rig;
pub mod seed;
pub mod shim;
pub mod subject;
pub mod workload;

pub use self::child::CHILD_ARGUMENT;
pub use self::faults::{Faulted, full_disk, sync_failure};
pub use self::opening::every_call_of_opening;
pub use self::rig::{Death, Report, Rig};
pub use self::seed::Seed;
pub use self::subject::Engine;
pub use self::workload::Workload;

/// The usual mixture of deaths.
pub fn any_death(seed: &mut Seed) -> Death {
    match seed.below(100) {
        0 => Death::InACheckpoint,
        1..=39 => Death::AnyMoment,
        40..=79 => Death::InACall,
        _ => Death::PowerLoss,
    }
}
