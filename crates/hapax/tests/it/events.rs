//! Consumers on the memory store, in simulated time, with the testkit's broker.

mod batch;
mod crashes;
mod dead_letters;
mod handle;
mod identity;
mod metrics;
mod options;
mod process;
mod run;
mod tiers;
mod town;
