//! Runs all cases of `spec/cases/http` through `hapax serve`, in one process for each case. The upstream is the suite's
//! origin, or a third-party server in front of it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use hapax_core::BoxFuture;
use hapax_testkit::http_suite::{
    self, CASE, Case, Control, Feature, Origin, Report, Running, Server, Settings, StartError, Surface,
};
use serde_json::json;

use crate::fixture::Fixture;
use crate::sidecar::Sidecar;
#[cfg(target_os = "linux")]
use crate::third_party::{CaseAddresses, Program, ThirdParty};

/// The upstream of the sidecar.
enum UpstreamKind {
    /// The suite's origin, over HTTP/1.
    Http1,
    /// The suite's origin, over HTTP/2.
    Http2,
    /// A third-party server in front of the suite's origin, over HTTP/1.
    #[cfg(target_os = "linux")]
    ThirdParty(ThirdParty),
}

impl UpstreamKind {
    fn protocol(&self) -> &'static str {
        match self {
            Self::Http2 => "http2",
            _ => "http1",
        }
    }

    /// Serves the origin for the sidecar or for the server in front of it.
    async fn serve(&self, origin: Origin) -> std::io::Result<Served> {
        #[cfg(target_os = "linux")]
        if let Self::ThirdParty(server) = self {
            let addresses = server.addresses();
            let server = Server::start_at(addresses.origin, origin).await?;
            return Ok(Served { upstream: addresses.server, _server: server, _addresses: Some(addresses) });
        }
        let server = Server::start(origin).await?;
        Ok(Served {
            upstream: server.addr(),
            _server: server,
            #[cfg(target_os = "linux")]
            _addresses: None,
        })
    }
}

/// A running upstream.
struct Served {
    upstream: SocketAddr,
    _server: Server,
    #[cfg(target_os = "linux")]
    _addresses: Option<CaseAddresses>,
}

/// All features but those that need access to the process: to its clock, its store and its tasks.
const CAN: [Feature; 7] = [
    Feature::Http2,
    Feature::Raw,
    Feature::Drain,
    Feature::Decode,
    Feature::Regex,
    Feature::Webhook,
    Feature::Grpc,
];

const NO_TUNNEL: &str = "the sidecar is a reverse proxy and refuses CONNECT itself";
const PROCESS_ENDED: &str = "a draining process without requests in flight has ended";
#[cfg(target_os = "linux")]
const TRAILERS_DROPPED: &str = "the server in front of the origin drops trailers";
#[cfg(target_os = "linux")]
const CONNECTION_DROPPED: &str = "nginx drops the field Connection and forwards the fields that it names";

impl Surface for UpstreamKind {
    fn name(&self) -> &str {
        match self {
            Self::Http1 => "sidecar",
            Self::Http2 => "sidecar-http2",
            #[cfg(target_os = "linux")]
            Self::ThirdParty(server) => server.program.surface(),
        }
    }

    fn can(&self) -> &[Feature] {
        match self {
            Self::Http2 => &CAN,
            // gRPC needs HTTP/2 end to end.
            _ => CAN.split_last().map_or(&[], |(_grpc, rest)| rest),
        }
    }

    fn skips(&self, case: &Case) -> Option<String> {
        let why = match (self, case.id.as_str()) {
            (_, "m-04-connect-passes") => NO_TUNNEL,
            (_, "x-13-draining") => PROCESS_ENDED,
            #[cfg(target_os = "linux")]
            (Self::ThirdParty(_), "r-11-trailers") => TRAILERS_DROPPED,
            #[cfg(target_os = "linux")]
            (Self::ThirdParty(server), "r-02-connection-fields") if server.program == Program::Nginx => {
                CONNECTION_DROPPED
            }
            _ => return None,
        };
        Some(why.to_owned())
    }

    async fn start(&self, settings: &Settings, origin: Origin) -> Result<Running, StartError> {
        let served = self.serve(origin).await?;
        let file = toml::to_string(&json!({
            "upstream": format!("http://{}", served.upstream),
            "upstream_options": { "protocol": self.protocol() },
            "store": { "url": "memory:" },
            "defaults": settings,
        }))?;
        let started = tokio::task::spawn_blocking(move || {
            let fixture = Fixture::bare();
            std::fs::write(fixture.path().join("hapax.toml"), file)?;
            let sidecar = Sidecar::start(&fixture, &[]);
            Ok::<_, std::io::Error>((sidecar, fixture))
        });
        let (sidecar, fixture) = started.await??;
        let addr = sidecar.address();
        let serving = Serving { sidecar: Mutex::new(sidecar), _fixture: fixture, _served: served };
        Ok(Running { addr, control: Box::new(serving) })
    }
}

/// What is dropped at the end of a case.
struct Serving {
    sidecar: Mutex<Sidecar>,
    _fixture: Fixture,
    _served: Served,
}

impl Control for Serving {
    fn drain(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            tokio::task::block_in_place(|| {
                let mut sidecar = self.sidecar.lock().unwrap_or_else(PoisonError::into_inner);
                sidecar.signal("TERM");
                sidecar.logged("shutdown requested; draining");
            });
        })
    }
}

async fn every_case(upstream: UpstreamKind) -> Report {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/cases/http");
    http_suite::run(&cases, &upstream, |_| true).await.unwrap()
}

/// All cases pass, except the expected number of skipped ones.
#[track_caller]
fn assert_passed_but(report: &Report, skipped: &[(&str, usize)]) {
    report.assert_passed();
    // With a filter, only some of the cases are skipped.
    if std::env::var_os(CASE).is_none() {
        assert_eq!(report.skipped(), BTreeMap::from_iter(skipped.iter().copied()), "{report}");
    }
}

/// Cases that a sidecar in front of an HTTP/1 service cannot run.
const SKIPPED_OVER_HTTP_1: [(&str, usize); 9] = [
    ("the surface cannot clock", 28),
    ("the surface cannot clock, store-faults", 2),
    ("the surface cannot gate", 8),
    ("the surface cannot grpc", 18),
    ("the surface cannot grpc, store-faults", 1),
    ("the surface cannot panics", 4),
    ("the surface cannot store-faults", 18),
    (NO_TUNNEL, 1),
    (PROCESS_ENDED, 2),
];

/// Further cases that cannot run with a server in between.
#[cfg(target_os = "linux")]
const SKIPPED_BEHIND_OTHERS: [(&str, usize); 1] = [(TRAILERS_DROPPED, 1)];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_passes_through_the_sidecar() {
    assert_passed_but(&every_case(UpstreamKind::Http1).await, &SKIPPED_OVER_HTTP_1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_passes_through_the_sidecar_in_front_of_an_http_2_service() {
    let skipped = [
        ("the surface cannot clock", 28),
        ("the surface cannot clock, store-faults", 2),
        ("the surface cannot gate", 8),
        ("the surface cannot panics", 4),
        ("the surface cannot store-faults", 19),
        (NO_TUNNEL, 1),
        (PROCESS_ENDED, 2),
    ];
    assert_passed_but(&every_case(UpstreamKind::Http2).await, &skipped);
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_passes_through_the_sidecar_in_front_of_nginx() {
    let report = every_case(UpstreamKind::ThirdParty(ThirdParty::start(Program::Nginx))).await;
    let own = [(CONNECTION_DROPPED, 2)];
    assert_passed_but(&report, &[&SKIPPED_OVER_HTTP_1[..], &SKIPPED_BEHIND_OTHERS, &own].concat());
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_passes_through_the_sidecar_in_front_of_express() {
    let report = every_case(UpstreamKind::ThirdParty(ThirdParty::start(Program::Express))).await;
    assert_passed_but(&report, &[&SKIPPED_OVER_HTTP_1[..], &SKIPPED_BEHIND_OTHERS].concat());
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_passes_through_the_sidecar_in_front_of_fastapi() {
    let report = every_case(UpstreamKind::ThirdParty(ThirdParty::start(Program::FastApi))).await;
    assert_passed_but(&report, &[&SKIPPED_OVER_HTTP_1[..], &SKIPPED_BEHIND_OTHERS].concat());
}
