//! Connections that nobody uses at the moment.

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::SendRequest;
use parking_lot::Mutex;

use super::Peer;

/// How many connections are kept, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keep {
    /// Of those to one peer.
    pub(crate) unused_max: usize,
    pub(crate) span: Duration,
}

type Sender = SendRequest<Full<Bytes>>;

pub(super) struct Kept {
    keep: Keep,
    /// The last used one last.
    unused: Mutex<HashMap<Peer, Vec<(Sender, Instant)>>>,
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").field("keep", &self.keep).finish_non_exhaustive()
    }
}

impl Kept {
    pub(super) fn new(keep: Keep) -> Self {
        Self { keep, unused: Mutex::default() }
    }

    pub(super) fn take(&self, peer: &Peer) -> Option<Sender> {
        let mut unused = self.unused.lock();
        let (sender, since) = unused.get_mut(peer)?.pop()?;
        (since.elapsed() < self.keep.span).then_some(sender)
    }

    /// Takes a connection back whose answer was read to its end.
    pub(super) fn keep(&self, peer: Peer, sender: Sender) {
        let mut unused = self.unused.lock();
        // Also those to peers that nobody asks any more.
        unused.retain(|_, senders| {
            senders.retain(|(sender, since)| since.elapsed() < self.keep.span && !sender.is_closed());
            !senders.is_empty()
        });
        let senders = unused.entry(peer).or_default();
        if senders.len() < self.keep.unused_max {
            senders.push((sender, Instant::now()));
        }
    }

    pub(super) fn forget(&self, peer: &Peer) {
        self.unused.lock().remove(peer);
    }
}
