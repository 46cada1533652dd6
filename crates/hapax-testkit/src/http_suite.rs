//! The HTTP conformance suite: the cases of `spec/cases/http`, played against any server over a real socket.
//!
//! # How to test a server
//!
//! Describe how to serve an [`Origin`] behind your layer or proxy:
//!
//! ```
//! use std::path::Path;
//! use hapax_testkit::http_suite::{self, Control, Feature, Origin, Running, Server, Settings, StartError, Surface};
//!
//! struct Bare;
//!
//! struct Serving { _server: Server }
//!
//! impl Control for Serving {}
//!
//! impl Surface for Bare {
//!     fn name(&self) -> &str { "bare" }
//!     fn can(&self) -> &[Feature] { &[Feature::Http2, Feature::Raw] }
//!     async fn start(&self, _: &Settings, origin: Origin) -> Result<Running, StartError> {
//!         let server = Server::start(origin).await?; // here: your layer around the origin
//!         Ok(Running { addr: server.addr(), control: Box::new(Serving { _server: server }) })
//!     }
//! }
//!
//! # let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/cases/http");
//! # let runtime = tokio::runtime::Runtime::new()?;
//! let report = runtime.block_on(http_suite::run(&cases, &Bare, |case| case.rule == "M-02"))?;
//! println!("{report}");
//! # assert!(report.counts()[0] > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Every case gets a fresh surface with an empty store. A case that needs a [`Feature`] which the surface does not
//! have, or which it [skips](Surface::skips), is reported as skipped. [`Report::assert_passed`] fails a test with the
//! list of failures.
//!
//! | environment variable | what it sets |
//! |---|---|
//! | `HAPAX_CASE` | only cases whose id has this text in it are played |
//! | `HAPAX_CASE_REPORT` | the folder into which a surface that must pass writes `SURFACE.tsv`: rule, case, verdict |

mod case;
mod compare;
mod gate;
mod in_process;
mod load;
mod origin;
mod play;
mod report;
mod serve;
pub mod structured_fields;
mod surface;
mod wire;

use std::path::Path;

use futures_util::StreamExt;
use futures_util::stream;

pub use case::{
    Action, Case, Content, Expect, Failure, Kind, Line, Scheme, Script, Seen, Send, Sign, Span, Step,
};
pub use gate::{GATE_HEADER, Gate, GateBody};
pub use in_process::{Drain, InProcess};
pub use load::{LoadError, load};
pub use origin::{Execution, Origin, OriginBody};
pub use report::{CaseResult, Mismatch, REPORT_DIR, Report, Verdict};
pub use serve::Server;
pub use surface::{Control, Feature, Running, Settings, StartError, StoreFault, Surface};

use wire::Version;

/// The environment variable that selects cases by a part of their id.
pub const CASE: &str = "HAPAX_CASE";

/// Concurrent cases: enough to keep two cores busy while some wait.
const CASES_AT_ONCE: usize = 16;

/// Plays every case below `dir` that `filter` takes, over each HTTP that the case and the surface can speak.
///
/// # Errors
/// [`LoadError`] when a case file is malformed. What cases find is in the
/// report.
pub async fn run(
    dir: &Path,
    surface: &impl Surface,
    filter: impl Fn(&Case) -> bool,
) -> Result<Report, LoadError> {
    let wanted = std::env::var(CASE).unwrap_or_default();
    let cases = load(dir)?;
    let chosen = cases.iter().filter(|case| case.id.contains(&wanted) && filter(case));
    let played = chosen.flat_map(|case| versions(case).map(move |version| (case, version)));
    let results = stream::iter(played)
        .map(|(case, version)| async move {
            let lacking = missing(case, version, surface.can());
            let verdict = match lacking.or_else(|| surface.skips(case)) {
                Some(why) => Verdict::Skipped(why),
                None => play::play(surface, case, version)
                    .await
                    .map_or_else(Verdict::Failed, |()| Verdict::Passed),
            };
            CaseResult { rule: case.rule.clone(), id: format!("{} {}", case.id, version.name()), verdict }
        })
        .buffered(CASES_AT_ONCE)
        .collect()
        .await;
    Ok(Report { surface: surface.name().to_owned(), results })
}

/// The HTTP versions of a case: hand-written bytes are HTTP/1, gRPC is HTTP/2, other cases are both.
fn versions(case: &Case) -> impl Iterator<Item = Version> {
    let needs = |feature| case.needs.contains(&feature);
    let (only_1, only_2) = (needs(Feature::Raw), needs(Feature::Http2));
    Version::ALL.into_iter().filter(move |version| match version {
        Version::Http1 => !only_2,
        Version::Http2 => !only_1,
    })
}

/// The features that the surface lacks for this case.
fn missing(case: &Case, version: Version, can: &[Feature]) -> Option<String> {
    let http2 = (version == Version::Http2).then_some(Feature::Http2);
    let needs = case.needs.iter().copied().chain(http2);
    let lacking: Vec<&str> = needs.filter(|need| !can.contains(need)).map(Feature::name).collect();
    (!lacking.is_empty()).then(|| format!("the surface cannot {}", lacking.join(", ")))
}
