use std::collections::BTreeSet;

use super::{Base, PEERS, bare};

#[test]
fn titles_are_unique() {
    let titles: BTreeSet<String> = PEERS.iter().map(|peer| peer.title()).collect();
    assert_eq!(titles.len(), PEERS.len());
}

#[test]
fn the_first_peer_of_each_base_keeps_no_records() {
    for base in Base::ALL {
        assert!(!bare(base).is_idempotent(), "{base:?}");
    }
}
