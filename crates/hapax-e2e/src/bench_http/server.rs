//! An orders service on axum, on its own thread and core.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::post;
use axum::serve::ListenerExt;
use hapax::Hapax;
use rustix::thread::Pid;
use tokio::net::TcpListener;
use tokio::runtime::Handle;

use super::{SERVER_CORE, threads};

/// A service that runs as long as the process.
pub struct Server {
    /// Its address.
    pub address: SocketAddr,
    thread: Pid,
    runtime: Handle,
}

impl Server {
    /// Starts the service as `wrap` makes it of the bare one, in the runtime of the service.
    ///
    /// # Panics
    /// When there is no thread or no port.
    pub fn start(wrap: impl AsyncFnOnce(Router) -> Router + Send + 'static) -> Self {
        let (started, is_started) = mpsc::channel();
        let thread = std::thread::Builder::new().name("server".into());
        let serve = move || {
            threads::pin(SERVER_CORE);
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime can be built");
            runtime.block_on(async {
                let listener =
                    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("there is a free port");
                let address = listener.local_addr().expect("a listener has an address");
                let app = wrap(Router::new().route("/orders", post(create))).await;
                let server = Self { address, thread: threads::this(), runtime: Handle::current() };
                started.send(server).expect("the caller waits for it");
                let listener = listener.tap_io(|stream| {
                    // Without it, small answers wait for acknowledgements.
                    let _ = stream.set_nodelay(true);
                });
                axum::serve(listener, app).await.expect("it serves until the process ends");
            });
        };
        thread.spawn(serve).expect("a thread can be started");
        is_started.recv().expect("the server starts")
    }

    /// The CPU time of the server thread.
    pub fn cpu(&self) -> Duration {
        threads::cpu_of(self.thread)
    }

    /// Removes what is due in the store, on the server's thread.
    pub fn sweep(&self, hapax: Hapax) {
        let (ended, is_ended) = mpsc::channel();
        self.runtime.spawn(async move {
            while hapax.store().sweep(10_000).await.is_ok_and(|swept| swept.more) {}
            let _ = ended.send(());
        });
        is_ended.recv().expect("the sweep ends");
    }
}

/// Yields once, as a handler with a database does.
async fn create(body: Bytes) -> impl IntoResponse {
    tokio::task::yield_now().await;
    assert!(!body.is_empty(), "an order has a body");
    let order = r#"{"id":"ord_1842","item":"book","amount":2,"state":"created"}"#;
    (StatusCode::CREATED, [(header::CONTENT_TYPE, "application/json")], order)
}
