//! The transport of a reverse proxy: listeners with limits and timeouts, and forwarding that sends a request at most once.
//!
//! It knows nothing of what a request means. A [`Listener`] calls a [`tower_service::Service`], and that may send the
//! request on with [`Forward`]. Its errors tell whether [nothing was sent](ForwardError::is_unsent).
//!
//! ```
//! use std::convert::Infallible;
//!
//! use bytes::Bytes;
//! use hapax_proxy::{ClientBody, Forward, ForwardBody, Listener, ListenerOptions, UpstreamOptions, Workers};
//! use http::{Request, Response};
//! use tokio_util::sync::CancellationToken;
//! # use tokio::io::{AsyncReadExt, AsyncWriteExt};
//! # use tokio::net::{TcpListener, TcpStream};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let upstream = TcpListener::bind("127.0.0.1:0").await?;
//! # let url = format!("http://{}", upstream.local_addr()?);
//! # tokio::spawn(async move {
//! #     let (mut stream, _) = upstream.accept().await?;
//! #     stream.read(&mut [0; 1024]).await?;
//! #     stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello").await
//! # });
//! // Such as http://127.0.0.1:3000.
//! let forward = Forward::new(&[url.parse()?], &UpstreamOptions::default())?;
//! let service = tower::service_fn(move |request: Request<ClientBody>| {
//!     let forward = forward.clone();
//!     async move {
//!         let response = forward.send(request, |_upstream| {}).await.unwrap_or_else(|error| {
//!             let mut response = Response::new(ForwardBody::from(Bytes::from(error.to_string())));
//!             *response.status_mut() = error.status();
//!             response
//!         });
//!         Ok::<_, Infallible>(response)
//!     }
//! });
//! let listener = Listener::bind("127.0.0.1:0".parse()?, &ListenerOptions::default(), None).await?;
//! let address = listener.local_addr();
//! let shutdown = CancellationToken::new();
//! let stop = shutdown.clone();
//! let served = tokio::spawn(async move { listener.serve(service, Workers::current(), stop).await });
//!
//! let mut client = TcpStream::connect(address).await?;
//! client.write_all(b"GET / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n").await?;
//! let mut response = String::new();
//! client.read_to_string(&mut response).await?;
//! assert!(response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("\r\n\r\nhello"));
//! shutdown.cancel();
//! served.await?;
//! # Ok(())
//! # }
//! ```
//!
//! # The life of a request
//!
//! 1. `listener.rs` accepts a connection if the limits allow it, and gives it to a worker (`workers.rs`). `connection.rs`
//!    does the TLS handshake and detects the version of HTTP. A silent connection is closed.
//! 2. Over HTTP/1, `client_io.rs` passes every byte through the inspector of `head.rs` before hyper parses it. A head that
//!    two parsers could read differently is answered 400, and the connection is closed. HTTP/2 is less ambiguous; what
//!    remains is checked in `connection.rs`.
//! 3. `fields.rs` removes what a client must not send, and adds where the request came from and its id. The body is
//!    [`ClientBody`], with an idle timeout and a minimum rate.
//! 4. The connection's clone of the service is called.
//! 5. [`Forward`] removes hop-by-hop fields, and `upstream.rs` chooses an address and a connection. The request is written
//!    with framing of the proxy's own, at most once.
//! 6. The response streams through, over HTTP/2 in parts with a timeout for each.
//!
//! | module | what it owns |
//! |---|---|
//! | `options` | limits and timeouts |
//! | `listener`, `connection` | clients' connections |
//! | `workers` | the runtimes that serve them |
//! | `request_slots` | the limit of running requests per connection |
//! | `response_budget` | the memory of responses that clients do not read |
//! | `client_io`, `head`, `http2_frames`, `request_body`, `deadline` | what clients may send, and how slowly |
//! | `fields` | header fields |
//! | `refusals` | responses of the proxy's own |
//! | `tls` | certificates and trust |
//! | `forward`, `upstream` | exchanges with the upstream |

mod client_io;
mod connection;
mod deadline;
mod error;
mod fields;
mod forward;
mod head;
mod http2_frames;
mod listener;
mod options;
mod refusals;
mod request_body;
mod request_slots;
mod response_budget;
mod tls;
mod upstream;
mod workers;

pub use self::error::SetupError;
pub use self::fields::ReservedFields;
pub use self::forward::{Forward, ForwardBody, ForwardBodyError, ForwardError};
pub use self::listener::Listener;
pub use self::options::{ListenerOptions, TlsFiles, UpstreamOptions, UpstreamProtocol};
pub use self::refusals::{EmptyResponses, RefusalResponses};
pub use self::request_body::{ClientBody, ClientBodyError};
pub use self::request_slots::RequestSlot;
pub use self::workers::{WorkerThreads, Workers};
