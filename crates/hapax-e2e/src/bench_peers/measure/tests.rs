use super::{Measured, Mode, Round};
use crate::bench_peers::catalogue::{Base, PEERS, Peer, StoreKind, bare};

fn round(rate: f64) -> Round {
    Round { rate, p50_millis: 1.0, p99_millis: 2.0, cpu_micros: 1e6 / rate, redis_micros: 0.0 }
}

fn ours(store: StoreKind) -> &'static Peer {
    PEERS.iter().find(|peer| peer.is_ours() && peer.store == store).unwrap()
}

#[test]
fn a_ratio_is_the_median_of_the_ratios_in_the_same_round() {
    let mut measured = Measured::default();
    let peer = ours(StoreKind::Memory);
    for (base, own) in [(100.0, 50.0), (200.0, 160.0), (100.0, 70.0)] {
        measured.push(bare(Base::Axum), Mode::Bare, round(base));
        measured.push(peer, Mode::Fresh, round(own));
    }
    let figures = measured.figures(peer, Mode::Fresh).unwrap();
    assert_eq!(figures.ratio, 0.7);
    assert_eq!(figures.rate, 70.0);
    assert_eq!(figures.spread_percent.round(), 157.0);
    assert_eq!(measured.figures(peer, Mode::Replay), None);
}

#[test]
fn a_ratio_without_a_base_is_not_a_number() {
    let mut measured = Measured::default();
    measured.push(ours(StoreKind::Redis), Mode::Fresh, round(1.0));
    assert!(measured.figures(ours(StoreKind::Redis), Mode::Fresh).unwrap().ratio.is_nan());
}

#[test]
fn the_best_peer_has_the_highest_ratio() {
    let mut measured = Measured::default();
    measured.push(bare(Base::Axum), Mode::Bare, round(100.0));
    let others =
        || PEERS.iter().filter(|peer| peer.base == Base::Axum && peer.is_idempotent() && !peer.is_ours());
    for (peer, rate) in others().zip([30.0, 60.0, 40.0]) {
        measured.push(peer, Mode::Fresh, round(rate));
    }
    let (best, figures) = measured.best(Mode::Fresh, |peer| !peer.is_ours()).unwrap();
    assert_eq!((best.title(), figures.ratio), (others().nth(1).unwrap().title(), 0.6));
    measured.forget(best);
    assert_eq!(measured.best(Mode::Fresh, |peer| !peer.is_ours()).unwrap().1.ratio, 0.4);
}
