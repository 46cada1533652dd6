//! [`Server`]: any tower service on a loopback port, over HTTP/1.1 and HTTP/2, until it is dropped.

use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tower_service::Service;

/// A running server. Dropping it closes its port and every connection.
#[derive(Debug)]
pub struct Server {
    addr: SocketAddr,
    accepting: JoinHandle<()>,
}

impl Server {
    /// Serves `service` on a free port of the loopback address.
    ///
    /// # Errors
    /// When there is no free port.
    pub async fn start<S, B>(service: S) -> io::Result<Self>
    where
        S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Future: Send,
        S::Error: Into<Box<dyn Error + Send + Sync>>,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        Self::start_at((Ipv4Addr::LOCALHOST, 0).into(), service).await
    }

    /// Serves `service` at this address.
    ///
    /// # Errors
    /// When the address is in use.
    pub async fn start_at<S, B>(addr: SocketAddr, service: S) -> io::Result<Self>
    where
        S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Future: Send,
        S::Error: Into<Box<dyn Error + Send + Sync>>,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let listener = TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let service = TowerToHyperService::new(service.clone());
                connections.spawn(async move {
                    let server = Builder::new(TokioExecutor::new());
                    // Clients that hang up are part of the cases, so errors are ignored.
                    let _ = server.serve_connection_with_upgrades(TokioIo::new(stream), service).await;
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(Self { addr, accepting })
    }

    /// A server at `addr` that the task `accepting` runs, until that task is aborted.
    pub fn of_task(addr: SocketAddr, accepting: JoinHandle<()>) -> Self {
        Self { addr, accepting }
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The set of connections goes with the task that owns it.
        self.accepting.abort();
    }
}
