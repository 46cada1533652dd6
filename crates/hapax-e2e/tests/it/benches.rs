//! Benchmarks that send a store's commands: they must fail when the store sends others.

use hapax_e2e::bench_redis::{Bench, Effort};

#[test]
fn both_sides_of_the_redis_bench_do_their_work() {
    let bench = Bench::start(Effort { callers: 4, operations: 200 }).unwrap();
    let round = bench.round(1).unwrap();
    for rate in [round.fresh, round.plain_pairs, round.replay, round.plain_get] {
        assert!(rate.is_finite() && rate > 0.0, "{round:?}");
    }
}
