//! The testkit tested: the suite passes on correct stores and fails on wrong ones, faults do what they say, and
//! the history checker tells legal from illegal.

mod rigs;
mod suite;
