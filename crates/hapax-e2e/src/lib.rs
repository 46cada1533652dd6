//! Proofs and benchmarks of Hapax as a whole. Not published.

pub mod bench_http;
pub mod bench_peers;
pub mod bench_postgres;
pub mod bench_redis;
pub mod bench_store;
pub mod chaos;
pub mod client;
pub mod crash;
pub mod fault_proxy;
pub mod flips;
pub mod goal;
pub mod http_rounds;
pub mod http_teeth;
pub mod rig;
pub mod sidecar;
pub mod simulation;
pub mod transactions;
