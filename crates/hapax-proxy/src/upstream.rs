//! [`UpstreamPool`]: chooses an address and a connection for each request.
//!
//! Connections are hyper's: one request at a time over HTTP/1.1, shared over HTTP/2. A request is sent at most once. It
//! is tried again only when hyper hands it back, which proves that nothing of it was sent, or when no connection could be
//! made.

mod connect;
mod connection;
mod connection_slots;
mod health;
mod outgoing_body;

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
pub(crate) use self::connection::Http1Connection;
use self::connection::{ConnectionError, Http2Connection, UpstreamConnection};
use self::connection_slots::{ConnectionSlot, ConnectionSlots};
pub(crate) use self::outgoing_body::OutgoingBody;
use crate::error::SetupError;
use crate::options::UpstreamOptions;

/// All addresses of the upstream.
#[derive(Debug)]
pub(crate) struct UpstreamPool {
    addresses: Vec<Arc<UpstreamAddress>>,
    next: AtomicUsize,
    connection_wait: Duration,
}

/// One address, and the connections to it.
#[derive(Debug)]
pub(crate) struct UpstreamAddress {
    target: Target,
    /// Host and port, for logs.
    name: Arc<str>,
    connect: Duration,
    response: Duration,
    keep_alive: Duration,
    idle_max: usize,
    is_up: AtomicBool,
    slots: ConnectionSlots,
    /// The most recently used one is last.
    idle: Mutex<Vec<IdleConnection>>,
    http2: Mutex<Option<Http2Connection>>,
    /// Held by the request that opens an HTTP/2 connection; the others wait for it and share it.
    connecting: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct IdleConnection {
    connection: Box<Http1Connection>,
    since: Instant,
}

/// The version of HTTP that a request requires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RequiredVersion {
    Any,
    /// For an upgrade, which only HTTP/1.1 has.
    Http1,
}

/// The head of a response, and the connection that its body comes from.
#[derive(Debug)]
pub(crate) struct UpstreamResponse {
    pub(crate) response: Response<Incoming>,
    pub(crate) connection: ResponseConnection,
}

/// The connection of a response.
#[derive(Debug)]
pub(crate) enum ResponseConnection {
    Http1(Box<Http1Connection>, Arc<UpstreamAddress>),
    Http2,
}

/// Why there is no response.
#[derive(Debug)]
pub(crate) enum SendError {
    /// Not a byte of the request was sent.
    NotSent,
    /// The same, because no connection became free in time.
    NoConnection,
    /// The response did not begin in time.
    TimedOut,
    /// The exchange broke off after it began.
    Lost(hyper::Error),
}

impl UpstreamPool {
    pub(crate) fn new(addresses: &[Uri], options: &UpstreamOptions) -> Result<Self, SetupError> {
        let targets = Target::all(addresses, options)?;
        let addresses: Vec<_> =
            targets.into_iter().map(|target| Arc::new(UpstreamAddress::new(target, options))).collect();
        // Without a runtime nothing is sent: the addresses are only validated.
        if let Ok(runtime) = Handle::try_current() {
            for address in &addresses {
                runtime.spawn(health::close_idle(Arc::downgrade(address)));
            }
            if addresses.len() > 1 {
                for address in &addresses {
                    runtime.spawn(health::watch(Arc::downgrade(address), health::HealthCheck::new(options)));
                }
            }
        }
        Ok(Self { addresses, next: AtomicUsize::new(0), connection_wait: options.connection_wait })
    }

    /// Whether requests may ask for an upgrade.
    pub(crate) fn supports_upgrades(&self) -> bool {
        self.addresses.iter().all(|address| address.target.supports_upgrades())
    }

    /// Sends a request to the first address that takes it. `sending_to` is called with every address that is tried.
    pub(crate) async fn send(
        &self,
        mut request: Box<Request<OutgoingBody>>,
        version: RequiredVersion,
        mut sending_to: impl FnMut(&Arc<str>) + Send,
    ) -> Result<UpstreamResponse, SendError> {
        let count = self.addresses.len();
        let first = if count == 1 { 0 } else { self.next.fetch_add(1, Ordering::Relaxed) };
        let in_turn = || (0..count).map(|offset| &self.addresses[(first.wrapping_add(offset)) % count]);
        let is_any_up = in_turn().any(|address| address.is_up.load(Ordering::Relaxed));
        let mut full = Vec::new();
        for address in in_turn() {
            // When all are down, a request is the quickest check.
            if is_any_up && count > 1 && !address.is_up.load(Ordering::Relaxed) {
                continue;
            }
            let Some(acquired) = address.try_acquire(version) else {
                full.push(address);
                continue;
            };
            sending_to(&address.name);
            match address.send(request, version, acquired).await {
                Err(ConnectionError::HandedBack(unsent)) => {
                    address.is_up.store(count == 1, Ordering::Relaxed);
                    request = unsent;
                }
                ended => return ended.map_err(SendError::from),
            }
        }
        // Addresses with a free slot are tried first; the request waits only when none has one.
        if full.is_empty() {
            return Err(SendError::NotSent);
        }
        let slots = full.into_iter().map(|address| {
            Box::pin(async move { address.slots.acquire().await.map(|slot| (address, slot)) })
        });
        let first_slot = timeout(self.connection_wait, select_all(slots)).await;
        let (slot, ..) = first_slot.map_err(|_| SendError::NoConnection)?;
        let (address, slot) = slot.ok_or(SendError::NoConnection)?;
        sending_to(&address.name);
        address.send(request, version, Acquired::Slot(slot)).await.map_err(SendError::from)
    }
}

/// What a request may use.
#[derive(Debug)]
enum Acquired {
    /// The shared HTTP/2 connection.
    Shared(Http2Connection),
    /// A connection of its own, idle or new.
    Slot(ConnectionSlot),
}

impl From<ConnectionError> for SendError {
    fn from(error: ConnectionError) -> Self {
        match error {
            ConnectionError::HandedBack(_) => Self::NotSent,
            ConnectionError::TimedOut => Self::TimedOut,
            ConnectionError::Lost(error) => Self::Lost(error),
        }
    }
}

impl UpstreamAddress {
    fn new(target: Target, options: &UpstreamOptions) -> Self {
        Self {
            name: target.authority().to_string().into(),
            target,
            connect: options.connect,
            response: options.response,
            keep_alive: options.keep_alive,
            idle_max: options.idle_max,
            is_up: AtomicBool::new(true),
            slots: ConnectionSlots::new(options.connections_max),
            idle: Mutex::default(),
            http2: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
        }
    }

    /// A connection, or the permission to use one; none while as many are in use as allowed.
    fn try_acquire(&self, version: RequiredVersion) -> Option<Acquired> {
        let shared = (version == RequiredVersion::Any).then(|| self.shared_http2()).flatten();
        shared.map(Acquired::Shared).or_else(|| self.slots.try_acquire().map(Acquired::Slot))
    }

    /// Sends a request on an open connection. If that hands it back, on a new one, and no further.
    async fn send(
        self: &Arc<Self>,
        mut request: Box<Request<OutgoingBody>>,
        version: RequiredVersion,
        acquired: Acquired,
    ) -> Result<UpstreamResponse, ConnectionError> {
        let (open, mut slot) = match acquired {
            Acquired::Shared(connection) => (Some(UpstreamConnection::Http2(connection)), None),
            Acquired::Slot(slot) => (self.reuse(version), Some(slot)),
        };
        if let Some(connection) = open {
            match self.send_on(connection, request, &mut slot).await {
                Err(ConnectionError::HandedBack(unsent)) => request = unsent,
                ended => return ended,
            }
        }
        // Boxed: most requests reuse a connection and need no memory for opening one.
        match timeout(self.connect, Box::pin(self.connect(version))).await {
            Ok(Ok(connection)) => self.send_on(connection, request, &mut slot).await,
            Ok(Err(error)) => {
                tracing::debug!(%error, "cannot connect to the upstream");
                Err(ConnectionError::HandedBack(request))
            }
            Err(_) => {
                tracing::debug!("connecting to the upstream timed out");
                Err(ConnectionError::HandedBack(request))
            }
        }
    }

    /// A connection with a response holds the slot from then on.
    async fn send_on(
        self: &Arc<Self>,
        connection: UpstreamConnection,
        mut request: Box<Request<OutgoingBody>>,
        slot: &mut Option<ConnectionSlot>,
    ) -> Result<UpstreamResponse, ConnectionError> {
        match connection {
            UpstreamConnection::Http1(mut connection) => {
                self.target.prepare_http1(&mut request);
                let response = connection.send(request, self.response).await?;
                connection.hold_slot(slot.take());
                let connection = ResponseConnection::Http1(connection, self.clone());
                Ok(UpstreamResponse { response, connection })
            }
            UpstreamConnection::Http2(mut connection) => {
                self.target.prepare_http2(&mut request);
                let response = connection.send(request, self.response).await?;
                Ok(UpstreamResponse { response, connection: ResponseConnection::Http2 })
            }
        }
    }

    /// An open connection that is free.
    fn reuse(&self, version: RequiredVersion) -> Option<UpstreamConnection> {
        if version == RequiredVersion::Any
            && let Some(connection) = self.shared_http2()
        {
            return Some(UpstreamConnection::Http2(connection));
        }
        loop {
            let IdleConnection { mut connection, since } = self.take_idle()?;
            if since.elapsed() < self.keep_alive && connection.is_open() {
                return Some(UpstreamConnection::Http1(connection));
            }
        }
    }

    /// The idle connection that this worker used last. One of another worker is used only where a new one would exceed
    /// the limit of open or idle connections: its I/O events wake the other worker's thread first.
    fn take_idle(&self) -> Option<IdleConnection> {
        let here = Handle::current().id();
        let mut idle = self.idle.lock();
        match idle.iter().rposition(|idle| idle.connection.runtime() == here) {
            Some(own) => Some(idle.remove(own)),
            None if idle.len() < self.idle_max && self.slots.has_free(idle.len()) => None,
            None => idle.pop(),
        }
    }

    fn shared_http2(&self) -> Option<Http2Connection> {
        self.http2.lock().as_ref().filter(|connection| connection.is_open()).cloned()
    }

    async fn connect(&self, version: RequiredVersion) -> std::io::Result<UpstreamConnection> {
        let expects_http2 =
            version == RequiredVersion::Any && self.target.expects_http2(self.http2.lock().is_some());
        let _turn = if expects_http2 { Some(self.connecting.lock().await) } else { None };
        if expects_http2 && let Some(connection) = self.shared_http2() {
            return Ok(UpstreamConnection::Http2(connection));
        }
        let connection = self.target.connect(version).await?;
        if let UpstreamConnection::Http2(connection) = &connection {
            *self.http2.lock() = Some(connection.clone());
        }
        Ok(connection)
    }

    /// Keeps a connection whose response was read to its end.
    pub(crate) fn keep(&self, mut connection: Box<Http1Connection>) {
        // Released last: a request that waits for the slot finds the connection among the idle ones.
        let _slot = connection.release_slot();
        let mut idle = self.idle.lock();
        if idle.len() < self.idle_max {
            idle.push(IdleConnection { connection, since: Instant::now() });
        }
    }

    /// Closes connections that were idle for too long.
    fn close_idle(&self) {
        let mut idle = self.idle.lock();
        // The oldest are first.
        let old = idle.iter().take_while(|idle| idle.since.elapsed() >= self.keep_alive).count();
        let closed: Vec<_> = idle.drain(..old).collect();
        drop(idle);
        drop(closed);
    }
}

#[cfg(test)]
mod tests;
