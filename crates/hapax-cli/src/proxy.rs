//! The proxy: takes connections, and forwards requests to the origin.
//!
//! It is the transport around the layer, and knows nothing of keys and records.
//!
//! # The life of a request
//!
//! 1. **Taken.** `listen.rs` takes a connection if there is a place for it, and gives it to a worker
//!    (`workers.rs`). `connection.rs` does the TLS handshake where there is one and finds out by the first bytes which
//!    version of HTTP is spoken. A connection that stays silent is closed.
//! 2. **Looked at.** Of HTTP/1, `socket.rs` lets `head.rs` see every byte before hyper parses it. What two parsers
//!    could read in two ways is answered 400, and the connection is closed. HTTP/2 leaves less to doubt; what is left
//!    is checked in `connection.rs`.
//! 3. **Admitted.** `fields.rs` takes off what a client must not say, and adds where the request came from and its id.
//!    Its body is `Received`, which does not wait for ever.
//! 4. **Served** by the service that its connection was given: the layer, and behind it [`Forward`].
//! 5. **Forwarded.** `forward.rs` takes off what belongs to the connection, and `upstream.rs` finds an address and a
//!    connection. The request is written anew, with framing of our own. It goes out at most once.
//! 6. **Answered.** The upstream's answer passes as it comes, over HTTP/2 in pieces that must be taken; or a problem says that nothing was sent, or that nobody
//!    knows what came of it. Either is told to the layer by an [`Outcome`](hapax::http::Outcome).
//!
//! | module | what it owns |
//! |---|---|
//! | `options` | what can be configured |
//! | `listen`, `connection` | clients' connections |
//! | `workers` | the runtimes that they are served on |
//! | `runs` | requests that run, also without their stream |
//! | `untaken` | the memory of answers that clients do not take |
//! | `socket`, `head`, `frames`, `received`, `deadline` | what clients may send, and how slowly |
//! | `fields` | header fields on their way |
//! | `tls` | certificates and trust |
//! | `forward`, `upstream` | exchanges with the origin |

mod connection;
mod deadline;
mod fields;
mod forward;
mod frames;
mod head;
mod listen;
mod options;
mod received;
mod runs;
mod socket;
mod tls;
mod untaken;
mod upstream;
mod workers;

pub(crate) use self::forward::Forward;
pub(crate) use self::listen::Listener;
pub(crate) use self::options::{Tls, Transport, UpstreamOptions};
pub(crate) use self::workers::WorkerThreads;

#[cfg(test)]
mod tests;
