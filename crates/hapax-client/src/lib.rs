//! An HTTP client whose retries are safe: it gives every call one idempotency key, and sends the same key and the same bytes
//! on every attempt.
//!
//! ```
//! # #[derive(serde::Serialize)] struct NewOrder { item: &'static str }
//! # #[derive(serde::Deserialize)] struct Order { id: u32 }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let url = hapax_client_example::orders().await?;
//! let client = hapax_client::Client::new();
//! let order: Order = client.post_json(&url, &NewOrder { item: "book" }).await?;
//! assert_eq!(order.id, 1);
//! # Ok(())
//! # }
//! # mod hapax_client_example {
//! #     use axum::{Router, routing::post};
//! #     use hapax::{Hapax, MemoryStore, http::IdempotencyLayer};
//! #     pub async fn orders() -> std::io::Result<String> {
//! #         let layer = IdempotencyLayer::new(Hapax::new(MemoryStore::new()));
//! #         let app: Router = Router::new().route("/orders", post(|| async { r#"{"id":1}"# })).layer(layer.for_axum());
//! #         let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! #         let url = format!("http://{}/orders", listener.local_addr()?);
//! #         tokio::spawn(async move { axum::serve(listener, app).await });
//! #         Ok(url)
//! #     }
//! # }
//! ```
//!
//! The service may use Hapax, or any other implementation of `Idempotency-Key`.
//!
//! # What happens to an attempt
//!
//! | the attempt ends with | the call |
//! |---|---|
//! | a final answer: 2xx, 3xx, most 4xx, anything marked as a replay | returns it |
//! | no connection, a timeout, a lost or cut-off answer | is retried |
//! | 408, 425, 429, 500, 502, 503, 504, a hint or a problem that says so | is retried; `Retry-After` is waited out |
//! | 502 or 504, and the retries are used up | ends with [`Error::Uncertain`]: a gateway says it whatever the service has done |
//! | 409 *in progress* | is repeated until the operation has ended; this takes no retry |
//! | 400, 401, 403, 422 | is never retried |
//! | *uncertain* | ends with [`Error::Uncertain`]: a person settles it at the server |
//! | *key reused* | ends with [`Error::Mismatch`] |
//!
//! Retries have three limits: those of the [`RetryPolicy`] (two), a [`RetryBudget`] for the whole client, and a deadline of one
//! minute. An answer counts when its body was received, too.
//!
//! # What a caller does with an error
//!
//! [`Error::key`] is the key. After [`Error::Uncertain`], [`Error::InProgress`] and [`Error::Exhausted`] send the operation
//! again with that key, never with a new one: the operation may have happened. To keep the key over a crash, store it before
//! the call is sent, or use a [journal](ClientBuilder::journal):
//!
//! ```no_run
//! # async fn charge(url: &str) -> Result<(), hapax_client::Error> {
//! use hapax_client::Client;
//!
//! let client = Client::builder().journal("file:./hapax-journal").build()?;
//! // A call leaves the journal once its end was dealt with here.
//! client.resume(async |resumed| {
//!     println!("{}: {:?}", resumed.call.url, resumed.result.map(|response| response.status()));
//!     Ok::<_, hapax_client::Error>(())
//! }).await?;
//! client.post(url).body("amount=5").send().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `middleware` | `RetryMiddleware`, the same retries in a client of `reqwest_middleware` |
//!
//! The rules are C-01 to C-04 of `spec/protocol.md`; the names of metrics are in [`observe`].

mod age;
mod budget;
mod call;
mod client;
mod error;
mod journal;
mod key_field;
#[cfg(feature = "middleware")]
mod middleware;
pub mod observe;
mod plan;
mod policy;
mod problem;
mod response;
mod retry;
mod send;

pub use budget::RetryBudget;
pub use call::{Call, CallBuilder};
pub use client::{Client, ClientBuilder};
pub use error::{Error, Last, Limit, MismatchFoundBy, UncertainCause};
pub use hapax_core::Key;
pub use journal::{JournalError, OpenCall, OpenCallState, Resumed};
#[cfg(feature = "middleware")]
pub use middleware::RetryMiddleware;
pub use policy::RetryPolicy;
pub use problem::Problem;
pub use response::Response;

/// Compiles the code of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/client.md")]
struct Guide;
