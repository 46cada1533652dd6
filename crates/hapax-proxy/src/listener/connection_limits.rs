//! How many connections there may be, in all and of one peer.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

/// The caps, and how far they are used.
#[derive(Debug)]
pub(super) struct Caps {
    all_max: usize,
    /// 0: no cap of its own.
    peer_max: usize,
    open: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    all: usize,
    /// Only peers that have connections, so it is never larger than those are many.
    by_peer: HashMap<IpAddr, usize>,
}

/// The place of one connection, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    caps: Arc<Caps>,
    peer: IpAddr,
}

impl Caps {
    pub(super) fn new(all_max: usize, peer_max: usize) -> Arc<Self> {
        Arc::new(Self { all_max, peer_max, open: Mutex::default() })
    }

    /// A place for a connection of this peer, if there is one.
    pub(super) fn take(self: &Arc<Self>, peer: IpAddr) -> Option<Place> {
        let mut open = self.open.lock();
        if open.all >= self.all_max {
            return None;
        }
        if self.peer_max > 0 {
            let of_peer = open.by_peer.entry(peer).or_default();
            if *of_peer >= self.peer_max {
                return None;
            }
            *of_peer += 1;
        }
        open.all += 1;
        Some(Place { caps: self.clone(), peer })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.caps.open.lock();
        open.all -= 1;
        if let Some(of_peer) = open.by_peer.get_mut(&self.peer) {
            *of_peer -= 1;
            if *of_peer == 0 {
                open.by_peer.remove(&self.peer);
            }
        }
    }
}
