use std::time::Duration;

use super::{Report, cell, is_service};
use crate::bench_peers::catalogue::{Base, PEERS, Peer, StoreKind, bare};
use crate::bench_peers::measure::{Mode, Round};
use crate::bench_peers::probe::Cell;

fn find(name: &str, store: StoreKind) -> &'static Peer {
    PEERS.iter().find(|peer| peer.name == name && peer.store == store).unwrap()
}

fn push(report: &mut Report, peer: &Peer, mode: Mode, rate: f64) {
    report.measured.push(
        peer,
        mode,
        Round { rate, p50_millis: 1.0, p99_millis: 2.0, cpu_micros: 10.0, redis_micros: 0.0 },
    );
}

/// Bare axum at 100 k, Hapax in memory at 70 k, and another peer in memory at `other`.
fn report(other: f64) -> Report {
    let mut report = Report { effort: (3, Duration::from_secs(2)), cores: 2, ..Report::default() };
    push(&mut report, bare(Base::Axum), Mode::Bare, 100e3);
    push(&mut report, find("Hapax", StoreKind::Memory), Mode::Fresh, 70e3);
    push(&mut report, find("axum-idempotent", StoreKind::Memory), Mode::Fresh, other);
    report
}

#[test]
fn a_missing_peer_is_listed_with_the_reason() {
    let mut report = report(50e3);
    report.missing.insert("idempotent, memory".into(), "it does not build".into());
    assert!(report.rates(Base::Axum).contains("| idempotent | memory | not available: it does not build |"));
    assert!(report.correctness().contains("| idempotent | memory | not available: it does not build |"));
}

#[test]
fn peers_that_were_not_chosen_are_left_out() {
    assert!(!report(50e3).rates(Base::Axum).contains("| idempotent |"));
    assert!(!report(50e3).correctness().contains("| idempotent |"));
}

#[test]
fn rates_are_shown_with_their_ratio() {
    assert!(
        report(50e3).rates(Base::Axum).contains("| axum-idempotent | memory | 50.0 k ± 0 % | 0.50 | – | – |")
    );
}

#[test]
fn a_goal_is_our_ratio_over_the_best_ratio_of_a_peer() {
    let in_memory = |peer: &Peer| is_service(peer) && peer.store == StoreKind::Memory;
    assert_eq!(report(50e3).ahead(Mode::Fresh, in_memory), Some(0.7 / 0.5));
    assert_eq!(report(50e3).ahead(Mode::Replay, in_memory), None);
}

#[test]
fn a_faster_peer_is_named_with_the_reason() {
    assert_eq!(report(50e3).faster(), "No peer was faster in this run.\n");
    let faster = report(80e3).faster();
    assert!(
        faster.starts_with("- **axum-idempotent, memory**, fresh keys: 0.80 of bare axum against 0.70"),
        "{faster}"
    );
    assert!(faster.contains("does not claim a key"), "{faster}");
}

#[test]
fn a_cell_marks_a_wrong_count() {
    let wrong = Cell { executions: 24, answer: "24 × 201, 26 × 409".into(), is_right: false };
    assert_eq!(cell(&wrong), "✗ 24 runs; 24 × 201, 26 × 409");
    let right = Cell { executions: 1, answer: "201".into(), is_right: true };
    assert_eq!(cell(&right), "1 run; 201");
}
