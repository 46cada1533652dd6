//! Tests of the test kit: the suite passes on correct stores and fails on wrong ones, injected faults have their
//! effect, and the history checker distinguishes legal histories from illegal ones.

mod faulty;
mod history;
mod http;
mod rigs;
mod servers;
mod suite;
mod teeth;
mod wrong;
