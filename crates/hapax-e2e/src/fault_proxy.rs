//! [`FaultProxy`]: a network between two processes that can be bad in six ways.
//!
//! It carries the bytes of TCP connections on loopback and knows nothing of what they mean. Bytes that it has carried
//! are never changed or reordered: what a fault does, a network or a crashing peer could have done.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::sleep;

/// Bytes that are carried at a time.
const CHUNK: usize = 16 << 10;

/// What is wrong with the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NetworkFault {
    /// Every connection ends at once, in order, and so does each new one.
    Cut,
    /// Connections are taken, and nothing is carried in either direction.
    BlackHole,
    /// Everything arrives so much later.
    Delay(Duration),
    /// The server's side of every connection ends, in order; what the client sends still arrives.
    HalfClose,
    /// So many more bytes come from the server on each connection, then it is cut.
    Truncate(usize),
    /// Every connection is reset at once, and so is each new one.
    Reset,
}

/// The network's state, and how often it has changed in a way that no connection survives.
#[derive(Clone, Copy, Default, Debug)]
struct Weather {
    fault: Option<NetworkFault>,
    generation: u64,
}

/// Takes connections and carries them to a server. It ends when it is dropped, and all its connections with it.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    weather: watch::Sender<Weather>,
}

impl FaultProxy {
    /// Begins to carry connections to `server`, on the runtime that this is called on.
    ///
    /// # Errors
    /// When there is no port to be had.
    pub async fn start(server: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("no port to be had")?;
        let address = listener.local_addr()?;
        let weather = watch::Sender::new(Weather::default());
        tokio::spawn(take(listener, server, weather.subscribe()));
        Ok(Self { address, weather })
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Makes the network bad, for all connections, those that are open and new ones.
    pub fn strike(&self, fault: NetworkFault) {
        let ends_all = matches!(fault, NetworkFault::Cut | NetworkFault::Reset);
        self.weather.send_modify(|weather| {
            weather.fault = Some(fault);
            weather.generation += u64::from(ends_all);
        });
    }

    /// Makes the network good for new connections. Those that lived through a fault end: nothing that was held back is
    /// carried later.
    pub fn heal(&self) {
        self.weather.send_modify(|weather| {
            weather.fault = None;
            weather.generation += 1;
        });
    }
}

async fn take(listener: TcpListener, server: SocketAddr, mut weather: watch::Receiver<Weather>) {
    loop {
        tokio::select! {
            taken = listener.accept() => {
                if let Ok((client, _)) = taken {
                    tokio::spawn(connection(client, server, weather.clone()));
                }
            }
            changed = weather.changed() => {
                if changed.is_err() {
                    return;
                }
            }
        }
    }
}

/// One connection, until both sides have ended it or the weather does.
async fn connection(mut client: TcpStream, server: SocketAddr, weather: watch::Receiver<Weather>) {
    let begun = *weather.borrow();
    match begun.fault {
        Some(NetworkFault::Cut) => return,
        Some(NetworkFault::Reset) => return reset(&client),
        _ => {}
    }
    let Ok(mut server) = TcpStream::connect(server).await else { return };
    // Small messages must not wait for each other's acknowledgement, as they would not without us.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let mut over = weather.clone();
    let end = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let up = carry(from_client, to_server, Side::Client, weather.clone());
        let down = carry(from_server, to_client, Side::Server, weather);
        let both = async {
            // One that is cut ends the other.
            let _ = tokio::try_join!(up, down);
        };
        tokio::select! {
            // The end comes first: what was held back must not get through in the moment that the network heals.
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

/// What is dropped after this is reset instead of closed in order.
fn reset(stream: &TcpStream) {
    // It fails only where the connection is gone already.
    let _ = stream.set_zero_linger();
}

/// Who sends in one direction of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

/// The connection is over, in both directions.
struct IsCut;

/// Carries one direction until its end.
async fn carry(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    sender: Side,
    mut weather: watch::Receiver<Weather>,
) -> Result<(), IsCut> {
    let mut bytes = vec![0; CHUNK];
    let mut truncated = None;
    loop {
        let fault = weather.borrow_and_update().fault;
        match fault {
            Some(NetworkFault::BlackHole) => {
                weather.changed().await.map_err(|_| IsCut)?;
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
            // What comes after a strike is struck.
            biased;
            changed = weather.changed() => {
                changed.map_err(|_| IsCut)?;
                continue;
            }
            read = from.read(&mut bytes) => read.map_err(|_| IsCut)?,
        };
        if length == 0 {
            let _ = to.shutdown().await;
            return Ok(());
        }
        if let Some(NetworkFault::Delay(span)) = fault {
            sleep(span).await;
        }
        let passed = truncated.map_or(length, |left| length.min(left));
        to.write_all(&bytes[..passed]).await.map_err(|_| IsCut)?;
        if let Some(left) = &mut truncated {
            *left -= passed;
            if *left == 0 {
                return Err(IsCut);
            }
        }
    }
}

#[cfg(test)]
mod tests;
