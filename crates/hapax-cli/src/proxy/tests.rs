//! The proxy over real sockets: a client that can write any bytes, and an origin that logs the bytes it got.

mod downgrade;
mod encrypted;
mod failures;
mod guards;
mod hops;
mod one_store;
mod pool;
mod resets;
mod rig;
mod room;
mod slow;
mod smuggling;
mod streams;
mod untaken;
