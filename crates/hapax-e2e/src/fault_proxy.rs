//! [`FaultProxy`]: a TCP proxy that injects six kinds of network faults.
//!
//! It forwards the bytes of connections on loopback without interpreting them, and never changes or reorders them: each
//! fault is one that a network or a crashing peer can cause.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::sleep;

/// Bytes that are forwarded at a time.
const CHUNK: usize = 16 << 10;

/// A fault of the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NetworkFault {
    /// Every connection is closed, and so is each new one.
    Cut,
    /// Connections are accepted, and nothing is forwarded in either direction.
    BlackHole,
    /// All bytes arrive later by this span.
    Delay(Duration),
    /// The server's side of every connection is closed; the client's bytes still arrive.
    HalfClose,
    /// So many more bytes come from the server on each connection, then it is closed.
    Truncate(usize),
    /// Every connection is reset, and so is each new one.
    Reset,
}

/// The current fault, and how often all connections were ended.
#[derive(Clone, Copy, Default, Debug)]
struct NetworkState {
    fault: Option<NetworkFault>,
    generation: u64,
}

/// Forwards connections to a server. Dropping it ends all its connections.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    network: watch::Sender<NetworkState>,
}

impl FaultProxy {
    /// Begins to forward connections to `server`, in tasks of the current runtime.
    ///
    /// # Errors
    /// When there is no free port.
    pub async fn start(server: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("no free port")?;
        let address = listener.local_addr()?;
        let network = watch::Sender::new(NetworkState::default());
        tokio::spawn(accept_connections(listener, server, network.subscribe()));
        Ok(Self { address, network })
    }

    /// The address for clients.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Begins a fault of all connections, open and new ones.
    pub fn strike(&self, fault: NetworkFault) {
        let ends_all = matches!(fault, NetworkFault::Cut | NetworkFault::Reset);
        self.network.send_modify(|network| {
            network.fault = Some(fault);
            network.generation += u64::from(ends_all);
        });
    }

    /// Ends the fault for new connections. Those that were open are closed: no bytes that were held back are forwarded later.
    pub fn heal(&self) {
        self.network.send_modify(|network| {
            network.fault = None;
            network.generation += 1;
        });
    }
}

async fn accept_connections(
    listener: TcpListener,
    server: SocketAddr,
    mut network: watch::Receiver<NetworkState>,
) {
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((client, _)) = accepted {
                    tokio::spawn(connection(client, server, network.clone()));
                }
            }
            changed = network.changed() => {
                if changed.is_err() {
                    return;
                }
            }
        }
    }
}

/// One connection, until both sides have closed it or a fault ends it.
async fn connection(mut client: TcpStream, server: SocketAddr, network: watch::Receiver<NetworkState>) {
    let begun = *network.borrow();
    match begun.fault {
        Some(NetworkFault::Cut) => return,
        Some(NetworkFault::Reset) => return reset(&client),
        _ => {}
    }
    let Ok(mut server) = TcpStream::connect(server).await else { return };
    // Nagle's algorithm would delay small messages, as it does not without the proxy.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let mut over = network.clone();
    let end = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let up = forward(from_client, to_server, Side::Client, network.clone());
        let down = forward(from_server, to_client, Side::Server, network);
        let both = async {
            // A closed direction ends the other.
            let _ = tokio::try_join!(up, down);
        };
        tokio::select! {
            // The end comes first: bytes that were held back must not get through at the moment that the network heals.
            biased;
            end = over.wait_for(|now| now.generation > begun.generation) => end.ok().and_then(|end| end.fault),
            () = both => None,
        }
    };
    if end == Some(NetworkFault::Reset) {
        reset(&client);
        reset(&server);
    }
}

/// Dropping the stream after this resets it.
fn reset(stream: &TcpStream) {
    // It fails only where the connection is gone already.
    let _ = stream.set_zero_linger();
}

/// The sender of one direction of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

/// The connection is closed in both directions.
struct ConnectionCut;

/// Forwards one direction until its end.
async fn forward(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    sender: Side,
    mut network: watch::Receiver<NetworkState>,
) -> Result<(), ConnectionCut> {
    let mut bytes = vec![0; CHUNK];
    let mut truncated = None;
    loop {
        let fault = network.borrow_and_update().fault;
        match fault {
            Some(NetworkFault::BlackHole) => {
                network.changed().await.map_err(|_| ConnectionCut)?;
                continue;
            }
            Some(NetworkFault::HalfClose) if sender == Side::Server => {
                let _ = to.shutdown().await;
                return Ok(());
            }
            Some(NetworkFault::Truncate(left)) if sender == Side::Server => {
                truncated.get_or_insert(left);
            }
            _ => {}
        }
        let length = tokio::select! {
            // Bytes that come after the begin of a fault are subject to it.
            biased;
            changed = network.changed() => {
                changed.map_err(|_| ConnectionCut)?;
                continue;
            }
            read = from.read(&mut bytes) => read.map_err(|_| ConnectionCut)?,
        };
        if length == 0 {
            let _ = to.shutdown().await;
            return Ok(());
        }
        if let Some(NetworkFault::Delay(span)) = fault {
            sleep(span).await;
        }
        let passed = truncated.map_or(length, |left| length.min(left));
        to.write_all(&bytes[..passed]).await.map_err(|_| ConnectionCut)?;
        if let Some(left) = &mut truncated {
            *left -= passed;
            if *left == 0 {
                return Err(ConnectionCut);
            }
        }
    }
}

#[cfg(test)]
mod tests;
