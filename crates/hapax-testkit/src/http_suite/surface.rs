//! [`Surface`]: the HTTP server under test, as its author describes it to the suite.

use std::error::Error;
use std::fmt;
use std::future::{Future, ready};
use std::net::SocketAddr;
use std::time::Duration;

use hapax_core::{BoxFuture, StoreErrorKind};
use serde::Deserialize;

use super::{Case, Origin};
use crate::{Fault, Op, Plan};

/// The options of a route by name, as a configuration file has them.
pub type Settings = serde_json::Map<String, serde_json::Value>;

/// Why a surface could not be started.
pub type StartError = Box<dyn Error + Send + Sync>;

/// Longer than any step takes on a slow machine, and short enough to wait for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A way to put the layer before an origin and to serve both on a socket: axum, hyper, a proxy, a binding.
pub trait Surface: Sync {
    /// A short name for reports and their files.
    fn name(&self) -> &str;

    /// Its features beyond plain requests over HTTP/1.1. Cases that need more are reported as skipped.
    fn can(&self) -> &[Feature];

    /// Why it cannot play this one case, although it has its features. The case is reported as skipped.
    fn skips(&self, case: &Case) -> Option<String> {
        let _ = case;
        None
    }

    /// The timeout of each step. It only ends what hangs: no verdict depends on durations.
    fn patience(&self) -> Duration {
        PATIENCE
    }

    /// Serves `origin` behind a layer with `settings`, with an empty store, on a free loopback port.
    ///
    /// # Errors
    /// When the settings are invalid or there is no port; the case then fails with the reason.
    fn start(
        &self,
        settings: &Settings,
        origin: Origin,
    ) -> impl Future<Output = Result<Running, StartError>> + Send;
}

/// A surface that is being served. Dropping it stops it.
pub struct Running {
    /// Where it listens.
    pub addr: SocketAddr,
    /// Controls its clock, its store and its end; also owns what must be dropped to stop serving.
    pub control: Box<dyn Control>,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("addr", &self.addr).finish_non_exhaustive()
    }
}

/// What a case does to a surface beside sending requests. Only what [`Surface::can`] lists is called.
pub trait Control: Send + Sync {
    /// Lets `span` pass on the store's clock.
    fn advance(&self, span: Duration) -> BoxFuture<'_, ()> {
        let _ = span;
        Box::pin(ready(()))
    }

    /// Begins a graceful shutdown: no new claims. Returns when it has begun, not when it has ended.
    fn drain(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }

    /// Changes how the store behaves from now on.
    fn store(&self, fault: StoreFault) -> BoxFuture<'_, ()> {
        let _ = fault;
        Box::pin(ready(()))
    }
}

/// A feature that not every surface has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Feature {
    /// HTTP/2 with prior knowledge on the same port.
    Http2,
    /// The layer gets the bytes of an HTTP/1 connection as they were written.
    Raw,
    /// [`Control::advance`].
    Clock,
    /// [`Control::drain`].
    Drain,
    /// [`Control::store`].
    StoreFaults,
    /// The origin is called in the same process, so that its panics are visible as such.
    Panics,
    /// A [`Gate`](super::Gate) stands in front of the layer.
    Gate,
    /// gRPC.
    Grpc,
    /// Compressed request bodies are decoded.
    Decode,
    /// Key patterns.
    Regex,
    /// Receives webhooks.
    Webhook,
}

impl Feature {
    /// Every feature: those of a layer in the same process.
    pub const ALL: [Self; 11] = [
        Self::Http2,
        Self::Raw,
        Self::Clock,
        Self::Drain,
        Self::StoreFaults,
        Self::Panics,
        Self::Gate,
        Self::Grpc,
        Self::Decode,
        Self::Regex,
        Self::Webhook,
    ];

    /// The name in case files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http2 => "http2",
            Self::Raw => "raw",
            Self::Clock => "clock",
            Self::Drain => "drain",
            Self::StoreFaults => "store-faults",
            Self::Panics => "panics",
            Self::Gate => "gate",
            Self::Grpc => "grpc",
            Self::Decode => "decode",
            Self::Regex => "regex",
            Self::Webhook => "webhook",
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a store behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoreFault {
    /// It works again.
    Up,
    /// Every call fails and nothing is applied.
    Down,
    /// The answer to the next claim is lost; the claim is applied.
    ClaimAnswerLost,
    /// No outcome can be stored; claims work.
    OutcomesRefused,
}

impl StoreFault {
    /// The same for a [`Faulty`](crate::Faulty) store.
    pub fn plan(self) -> Plan {
        let unavailable = Fault::ErrorBefore(StoreErrorKind::Unavailable);
        match self {
            Self::Up => Plan::new(),
            Self::Down => Op::ALL.into_iter().fold(Plan::new(), |plan, op| plan.always(op, unavailable)),
            Self::ClaimAnswerLost => Plan::new().at_nth(Op::Claim, 1, Fault::AnswerLost),
            Self::OutcomesRefused => [Op::Complete, Op::Release, Op::Abandon]
                .into_iter()
                .fold(Plan::new(), |plan, op| plan.always(op, unavailable)),
        }
    }
}
