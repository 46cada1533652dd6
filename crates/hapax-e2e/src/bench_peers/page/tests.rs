use super::Report;
use crate::bench_peers::catalogue::{Base, bare};
use crate::bench_peers::measure::{Mode, Round};

#[test]
fn the_page_has_no_place_that_is_not_filled_in() {
    let mut report = Report { cores: 2, ..Report::default() };
    let round = Round { rate: 100e3, p50_millis: 1.0, p99_millis: 2.0, cpu_micros: 10.0, redis_micros: 0.0 };
    report.measured.push(bare(Base::Axum), Mode::Bare, round);
    let page = report.page();
    assert!(!page.contains(['{', '}']), "{page}");
    assert!(page.contains("| axum, bare | – | 100.0 k ± 0 % | 1 |"), "{page}");
}

#[test]
fn a_chart_has_a_bar_for_each_measured_peer() {
    let mut report = Report::default();
    let round = Round { rate: 50e3, p50_millis: 1.0, p99_millis: 2.0, cpu_micros: 10.0, redis_micros: 0.0 };
    report.measured.push(bare(Base::Proxy), Mode::Bare, round);
    let charts = report.charts();
    let (_, drawn) = charts.iter().find(|(name, _)| *name == "proxy-fresh.svg").unwrap();
    assert!(drawn.contains("nginx: 50.0"), "{drawn}");
}
