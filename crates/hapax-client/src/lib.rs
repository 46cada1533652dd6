//! An HTTP client whose retries are safe.
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
