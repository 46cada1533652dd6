//! Limits the number of open connections, in total and per peer address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

/// The limits and their current use.
#[derive(Debug)]
pub(super) struct ConnectionLimits {
    total_max: usize,
    /// 0: no limit per peer.
    peer_max: usize,
    open: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    total: usize,
    /// Only peers with open connections, so it is bounded by `total`.
    by_peer: HashMap<IpAddr, usize>,
}

/// The permit of one connection, returned on drop.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    limits: Arc<ConnectionLimits>,
    peer: IpAddr,
}

impl ConnectionLimits {
    pub(super) fn new(total_max: usize, peer_max: usize) -> Arc<Self> {
        Arc::new(Self { total_max, peer_max, open: Mutex::default() })
    }

    /// A permit for a connection of this peer, unless a limit is reached.
    pub(super) fn try_acquire(self: &Arc<Self>, peer: IpAddr) -> Option<ConnectionPermit> {
        let mut open = self.open.lock();
        if open.total >= self.total_max {
            return None;
        }
        if self.peer_max > 0 {
            let of_peer = open.by_peer.entry(peer).or_default();
            if *of_peer >= self.peer_max {
                return None;
            }
            *of_peer += 1;
        }
        open.total += 1;
        Some(ConnectionPermit { limits: self.clone(), peer })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = self.limits.open.lock();
        open.total -= 1;
        if let Some(of_peer) = open.by_peer.get_mut(&self.peer) {
            *of_peer -= 1;
            if *of_peer == 0 {
                open.by_peer.remove(&self.peer);
            }
        }
    }
}
