//! The testkit tested: the suite passes on correct stores and fails on wrong ones, faults do what they say, and
//! the history checker tells legal from illegal.

mod faulty;
mod history;
mod http;
mod rigs;
mod servers;
mod suite;
mod teeth;
mod wrong;
