//! The admin listener of the `hapax` sidecar: health and metrics for monitoring, an API for programs, a console for
//! operators. With it, the code for records that the commands of `hapax` share: queries, changes, and their JSON.
//!
//! The listener has an address of its own, on loopback by default, and serves plain HTTP/1.1.
//!
//! | path | required | contents |
//! |---|---|---|
//! | `/healthz`, `/readyz` | nothing | liveness and readiness |
//! | `/metrics`, `/openapi.json` | a known Host | metrics for Prometheus; the description of the API |
//! | `/api/v1/…` | the token, or the console's cookie | records, counts, configuration, audit log |
//! | all others | the console's cookie | the console; its login page and its assets need no cookie |
//!
//! A request passes, in this order: the limits of the connection (`connection.rs`, `connection_slots.rs`), the Host check
//! (`host.rs`), the token or the cookie and the check against forged requests (`auth.rs`), then the API (`api.rs`) or the
//! console (`console.rs`). Both change records only through [`Records`](records::Records), and every change is written to
//! the audit log (`audit.rs`) before it begins and after it has ended. Refusals are problem documents (`problem.rs`).
//!
//! The crate does not depend on the proxy, on a store or on the command line: [`Admin`] has everything that it shows.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use hapax::{Hapax, MemoryStore};
//! use hapax_admin::{Admin, AdminListener, AdminOptions};
//! use metrics_exporter_prometheus::PrometheusBuilder;
//! use tokio_util::sync::CancellationToken;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let admin = Admin {
//!     hapax: Hapax::builder(MemoryStore::new()).build(),
//!     metrics: PrometheusBuilder::new().build_recorder().handle(),
//!     config: Arc::new(|| serde_json::json!({ "listen": "127.0.0.1:8080" })),
//!     retention: Arc::new(|_operation| Duration::from_secs(24 * 3600)),
//!     ready: Arc::new(|| true),
//!     data_dir: None,
//! };
//! let options = AdminOptions { listen: "127.0.0.1:0".parse()?, ..AdminOptions::default() };
//! if let Some(listener) = AdminListener::bind(&options, None).await? {
//!     println!("{} {:?}", listener.local_addr(), listener.generated_token());
//!     let shutdown = CancellationToken::new();
//!     # shutdown.cancel();
//!     listener.serve(admin, shutdown).await?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `listener` | the listener and the state that requests share |
//! | `connection`, `connection_slots` | connections and their limits |
//! | `router`, `health`, `openapi`, `problem`, `extract`, `query` | paths, their description, refusals, parameters |
//! | `auth`, `host`, `token`, `local` | access |
//! | [`api`], `audit` | the API and the audit log |
//! | `console`, `samples` | the console and its charts |
//! | [`records`], [`view`] | records, their changes, and their JSON |
//! | [`failure`] | errors |
//! | [`time`], [`text`], [`metric_names`] | durations, output for terminals, names of metrics |

pub mod api;
mod audit;
mod auth;
mod connection;
mod connection_slots;
mod console;
mod extract;
pub mod failure;
mod health;
mod host;
mod listener;
mod local;
pub mod metric_names;
mod openapi;
mod options;
mod problem;
mod query;
pub mod records;
mod router;
mod samples;
#[cfg(test)]
mod test_listener;
#[cfg(test)]
mod tests;
pub mod text;
pub mod time;
mod token;
pub mod view;

pub use self::auth::OPERATOR_HEADER;
pub use self::listener::{Admin, AdminListener};
pub use self::local::LocalAccess;
pub use self::options::{AdminListen, AdminOptions};
pub use self::problem::Problem;
pub use self::token::{TOKEN_VARIABLE, Token};
