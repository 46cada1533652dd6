//! The upstreams: which address is next, and a connection to it.
//!
//! Connections are hyper's, one request at a time for HTTP/1.1, shared for HTTP/2. A request goes out at most once. It
//! is offered again only when hyper hands it back, which proves that none of it was sent, or when no connection was
//! made at all. This file does not know what a failure means for a key: `forward.rs` says that.

mod connect;
mod health;
mod link;
mod outgoing;
mod room;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::select_all;
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};

use self::connect::Target;
pub(super) use self::link::{Http1, Unanswered};
use self::link::{Http2, Link};
pub(super) use self::outgoing::Outgoing;
use self::room::{Place, Room};
use super::options::UpstreamOptions;
use crate::failure::Failure;

/// All addresses of the origin.
#[derive(Debug)]
pub(super) struct Upstreams {
    addresses: Vec<Arc<Address>>,
    next: AtomicUsize,
    connection_wait: Duration,
}

/// One address, and the connections to it.
#[derive(Debug)]
pub(super) struct Address {
    target: Target,
    /// What the log calls it.
    name: Arc<str>,
    connect: Duration,
    response: Duration,
    keep_alive: Duration,
    idle_max: usize,
    is_up: AtomicBool,
    room: Room,
    /// Unused connections, the last used one last.
    unused: Mutex<Vec<Unused>>,
    http2: Mutex<Option<Http2>>,
    /// Whoever holds it connects; the others use the connection that is made. Only where HTTP/2 is spoken.
    connecting: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Unused {
    link: Box<Http1>,
    since: Instant,
}

/// The version of HTTP that a request needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Needs {
    Any,
    /// It asks for another protocol, which only HTTP/1.1 can.
    Http1,
}

/// The head of an answer, and what its body comes by.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) response: Response<Incoming>,
    pub(super) by: By,
}

/// Where an answer comes from.
#[derive(Debug)]
pub(super) enum By {
    Http1(Box<Http1>, Arc<Address>),
    Http2,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// Not a byte of the request was sent.
    NotSent,
    /// The same, because no connection became free in time.
    Full,
    /// The time for an answer passed.
    Late,
    /// The exchange broke off after it began.
    Lost(hyper::Error),
}

impl Upstreams {
    pub(super) fn new(addresses: &[Uri], options: &UpstreamOptions) -> Result<Self, Failure> {
        let targets = Target::all(addresses, options)?;
        let addresses: Vec<_> =
            targets.into_iter().map(|target| Arc::new(Address::new(target, options))).collect();
        // Without a runtime nothing is sent: somebody only looks whether the addresses make sense.
        if let Ok(runtime) = Handle::try_current() {
            for address in &addresses {
                runtime.spawn(health::forget_unused(Arc::downgrade(address)));
            }
            if addresses.len() > 1 {
                for address in &addresses {
                    runtime.spawn(health::watch(Arc::downgrade(address), health::Check::new(options)));
                }
            }
        }
        Ok(Self { addresses, next: AtomicUsize::new(0), connection_wait: options.connection_wait.0 })
    }

    /// Whether a request may ask an upstream for another protocol.
    pub(super) fn can_change_protocol(&self) -> bool {
        self.addresses.iter().all(|address| address.target.can_change_protocol())
    }

    /// Sends a request to the first address that takes it. The run that it is part of is told which.
    pub(super) async fn send(
        &self,
        mut request: Box<Request<Outgoing>>,
        needs: Needs,
        context: Option<&hapax::Context>,
    ) -> Result<Answer, NoAnswer> {
        let asks = |address: &Address| {
            if let Some(context) = context {
                context.asks(address.name.clone());
            }
        };
        let count = self.addresses.len();
        let first = if count == 1 { 0 } else { self.next.fetch_add(1, Ordering::Relaxed) };
        let in_turn = || (0..count).map(|offset| &self.addresses[(first.wrapping_add(offset)) % count]);
        let is_one_up = in_turn().any(|address| address.is_up.load(Ordering::Relaxed));
        let mut full = Vec::new();
        for address in in_turn() {
            // When all are down, asking is the quickest way to find out that one is back.
            if is_one_up && count > 1 && !address.is_up.load(Ordering::Relaxed) {
                continue;
            }
            let Some(way) = address.way(needs) else {
                full.push(address);
                continue;
            };
            asks(address);
            match address.send(request, needs, way).await {
                Err(Unanswered::HandedBack(unsent)) => {
                    address.is_up.store(count == 1, Ordering::Relaxed);
                    request = unsent;
                }
                ended => return ended.map_err(NoAnswer::from),
            }
        }
        // Whoever has room is asked first; only when nobody has, it is waited for.
        if full.is_empty() {
            return Err(NoAnswer::NotSent);
        }
        let places = full.into_iter().map(|address| {
            Box::pin(async move { address.room.next_place().await.map(|place| (address, place)) })
        });
        let first_place = timeout(self.connection_wait, select_all(places)).await;
        let (place, ..) = first_place.map_err(|_| NoAnswer::Full)?;
        let (address, place) = place.ok_or(NoAnswer::Full)?;
        asks(address);
        address.send(request, needs, Way::Own(place)).await.map_err(NoAnswer::from)
    }
}

/// What a request goes by.
#[derive(Debug)]
enum Way {
    /// The connection that all share.
    Shared(Http2),
    /// One of its own, which is taken up or opened.
    Own(Place),
}

impl From<Unanswered> for NoAnswer {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::HandedBack(_) => Self::NotSent,
            Unanswered::Late => Self::Late,
            Unanswered::Lost(error) => Self::Lost(error),
        }
    }
}

impl Address {
    fn new(target: Target, options: &UpstreamOptions) -> Self {
        Self {
            name: target.authority().to_string().into(),
            target,
            connect: options.connect.0,
            response: options.response.0,
            keep_alive: options.keep_alive.0,
            idle_max: options.idle_max,
            is_up: AtomicBool::new(true),
            room: Room::new(options.connections_max),
            unused: Mutex::default(),
            http2: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
        }
    }

    /// How a request can go out now. None where as many connections are in use as may be.
    fn way(&self, needs: Needs) -> Option<Way> {
        let shared = (needs == Needs::Any).then(|| self.shared_http2()).flatten();
        shared.map(Way::Shared).or_else(|| self.room.place().map(Way::Own))
    }

    /// Sends a request on a connection that is there. If that hands it back, on a new one; and that is all.
    async fn send(
        self: &Arc<Self>,
        mut request: Box<Request<Outgoing>>,
        needs: Needs,
        way: Way,
    ) -> Result<Answer, Unanswered> {
        let (used, mut place) = match way {
            Way::Shared(link) => (Some(Link::Http2(link)), None),
            Way::Own(place) => (self.reuse(needs), Some(place)),
        };
        if let Some(link) = used {
            match self.send_on(link, request, &mut place).await {
                Err(Unanswered::HandedBack(unsent)) => request = unsent,
                ended => return ended,
            }
        }
        // In a box: most requests find a connection that is open, and need no room for opening one.
        match timeout(self.connect, Box::pin(self.connect(needs))).await {
            Ok(Ok(link)) => self.send_on(link, request, &mut place).await,
            Ok(Err(error)) => {
                tracing::debug!(%error, "cannot connect to the upstream");
                Err(Unanswered::HandedBack(request))
            }
            Err(_) => {
                tracing::debug!("connecting to the upstream took too long");
                Err(Unanswered::HandedBack(request))
            }
        }
    }

    /// A connection that answered has the place from then on.
    async fn send_on(
        self: &Arc<Self>,
        link: Link,
        mut request: Box<Request<Outgoing>>,
        place: &mut Option<Place>,
    ) -> Result<Answer, Unanswered> {
        match link {
            Link::Http1(mut link) => {
                self.target.address_http1(&mut request);
                let response = link.send(request, self.response).await?;
                link.occupy(place.take());
                Ok(Answer { response, by: By::Http1(link, self.clone()) })
            }
            Link::Http2(mut link) => {
                self.target.address_http2(&mut request);
                let response = link.send(request, self.response).await?;
                Ok(Answer { response, by: By::Http2 })
            }
        }
    }

    /// A connection that is open and free.
    fn reuse(&self, needs: Needs) -> Option<Link> {
        if needs == Needs::Any
            && let Some(link) = self.shared_http2()
        {
            return Some(Link::Http2(link));
        }
        loop {
            let Unused { mut link, since } = self.take_unused()?;
            if since.elapsed() < self.keep_alive && link.is_open() {
                return Some(Link::Http1(link));
            }
        }
    }

    /// The one that this worker used last. What another one has left is taken up only where too many would be open or
    /// unused otherwise: its bytes wake that one's thread first.
    fn take_unused(&self) -> Option<Unused> {
        let here = Handle::current().id();
        let mut unused = self.unused.lock();
        match unused.iter().rposition(|unused| unused.link.runtime() == here) {
            Some(own) => Some(unused.remove(own)),
            None if unused.len() < self.idle_max && self.room.is_left_for(unused.len()) => None,
            None => unused.pop(),
        }
    }

    fn shared_http2(&self) -> Option<Http2> {
        self.http2.lock().as_ref().filter(|link| link.is_open()).cloned()
    }

    async fn connect(&self, needs: Needs) -> std::io::Result<Link> {
        let speaks_http2 = needs == Needs::Any && self.target.speaks_http2(self.http2.lock().is_some());
        let _turn = if speaks_http2 { Some(self.connecting.lock().await) } else { None };
        if speaks_http2 && let Some(link) = self.shared_http2() {
            return Ok(Link::Http2(link));
        }
        let link = self.target.connect(needs).await?;
        if let Link::Http2(link) = &link {
            *self.http2.lock() = Some(link.clone());
        }
        Ok(link)
    }

    /// Takes a connection back whose answer was read to its end.
    pub(super) fn keep(&self, mut link: Box<Http1>) {
        // Given back last: whoever waits for it finds the connection among the unused ones.
        let _place = link.vacate();
        let mut unused = self.unused.lock();
        if unused.len() < self.idle_max {
            unused.push(Unused { link, since: Instant::now() });
        }
    }

    /// Closes what was not used for long.
    fn forget_unused(&self) {
        let mut unused = self.unused.lock();
        // The oldest come first.
        let old = unused.iter().take_while(|unused| unused.since.elapsed() >= self.keep_alive).count();
        let closed: Vec<_> = unused.drain(..old).collect();
        drop(unused);
        drop(closed);
    }
}

#[cfg(test)]
mod tests;
