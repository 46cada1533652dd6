//! Every case of `spec/cases/http` through `hapax serve`: a process for each case, and a service on a socket behind it,
//! which is the suite's origin itself or a server that is not ours before it.

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
#[cfg(target_os = "linux")]
use crate::foreign::{Foreign, Place, Program};
use crate::sidecar::Sidecar;

/// What the sidecar speaks with.
enum Behind {
    /// The suite's origin, over HTTP/1.
    Http1,
    /// The suite's origin, over HTTP/2.
    Http2,
    /// Another server before the suite's origin, over HTTP/1.
    #[cfg(target_os = "linux")]
    Foreign(Foreign),
}

impl Behind {
    fn protocol(&self) -> &'static str {
        match self {
            Self::Http2 => "http2",
            _ => "http1",
        }
    }

    /// Serves the origin where the sidecar finds it, or whoever stands before it.
    async fn serve(&self, origin: Origin) -> std::io::Result<Served> {
        #[cfg(target_os = "linux")]
        if let Self::Foreign(foreign) = self {
            let place = foreign.place();
            let server = Server::start_at(place.origin, origin).await?;
            return Ok(Served { upstream: place.server, _server: server, _place: Some(place) });
        }
        let server = Server::start(origin).await?;
        Ok(Served {
            upstream: server.addr(),
            _server: server,
            #[cfg(target_os = "linux")]
            _place: None,
        })
    }
}

/// A service behind the sidecar.
struct Served {
    upstream: SocketAddr,
    _server: Server,
    #[cfg(target_os = "linux")]
    _place: Option<Place>,
}

/// Beside what a process keeps to itself: its clock, its store, and what stands in front of it.
const CAN: [Feature; 7] = [
    Feature::Http2,
    Feature::Raw,
    Feature::Drain,
    Feature::Decode,
    Feature::Regex,
    Feature::Webhook,
    Feature::Grpc,
];

const NO_TUNNEL: &str = "the sidecar stands before one service and refuses CONNECT itself";
const NOBODY_LEFT: &str = "a process that drains with nothing under way has ended";
#[cfg(target_os = "linux")]
const TRAILERS_DROPPED: &str = "the server before the origin passes no trailers on";
#[cfg(target_os = "linux")]
const CONNECTION_DROPPED: &str = "nginx drops the field Connection and passes on those that it names";

impl Surface for Behind {
    fn name(&self) -> &str {
        match self {
            Self::Http1 => "sidecar",
            Self::Http2 => "sidecar-http2",
            #[cfg(target_os = "linux")]
            Self::Foreign(foreign) => foreign.program.surface(),
        }
    }

    fn can(&self) -> &[Feature] {
        match self {
            Self::Http2 => &CAN,
            // gRPC is nothing without HTTP/2 all the way.
            _ => CAN.split_last().map_or(&[], |(_grpc, rest)| rest),
        }
    }

    fn skips(&self, case: &Case) -> Option<String> {
        let why = match (self, case.id.as_str()) {
            (_, "m-04-connect-passes") => NO_TUNNEL,
            (_, "x-13-draining") => NOBODY_LEFT,
            #[cfg(target_os = "linux")]
            (Self::Foreign(_), "r-11-trailers") => TRAILERS_DROPPED,
            #[cfg(target_os = "linux")]
            (Self::Foreign(foreign), "r-02-connection-fields") if foreign.program == Program::Nginx => {
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

/// Everything that ends with the case.
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

async fn every_case(behind: Behind) -> Report {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/cases/http");
    http_suite::run(&cases, &behind, |_| true).await.unwrap()
}

/// Every case passes but these, which are as many as ever.
#[track_caller]
fn assert_passed_but(report: &Report, skipped: &[(&str, usize)]) {
    report.assert_passed();
    // Whoever asks for some cases only gets some of the skipped ones.
    if std::env::var_os(CASE).is_none() {
        assert_eq!(report.skipped(), BTreeMap::from_iter(skipped.iter().copied()), "{report}");
    }
}

/// What no sidecar can play whose service speaks HTTP/1.
const SKIPPED_OVER_HTTP_1: [(&str, usize); 9] = [
    ("the surface cannot clock", 26),
    ("the surface cannot clock, store-faults", 2),
    ("the surface cannot gate", 8),
    ("the surface cannot grpc", 18),
    ("the surface cannot grpc, store-faults", 1),
    ("the surface cannot panics", 4),
    ("the surface cannot store-faults", 16),
    (NO_TUNNEL, 1),
    (NOBODY_LEFT, 2),
];

/// What a server between them cannot play besides.
#[cfg(target_os = "linux")]
const SKIPPED_BEHIND_OTHERS: [(&str, usize); 1] = [(TRAILERS_DROPPED, 1)];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_through_the_sidecar() {
    assert_passed_but(&every_case(Behind::Http1).await, &SKIPPED_OVER_HTTP_1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_through_the_sidecar_before_a_service_that_speaks_http_2() {
    let skipped = [
        ("the surface cannot clock", 26),
        ("the surface cannot clock, store-faults", 2),
        ("the surface cannot gate", 8),
        ("the surface cannot panics", 4),
        ("the surface cannot store-faults", 17),
        (NO_TUNNEL, 1),
        (NOBODY_LEFT, 2),
    ];
    assert_passed_but(&every_case(Behind::Http2).await, &skipped);
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_through_the_sidecar_before_nginx() {
    let report = every_case(Behind::Foreign(Foreign::start(Program::Nginx))).await;
    let own = [(CONNECTION_DROPPED, 2)];
    assert_passed_but(&report, &[&SKIPPED_OVER_HTTP_1[..], &SKIPPED_BEHIND_OTHERS, &own].concat());
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_through_the_sidecar_before_express() {
    let report = every_case(Behind::Foreign(Foreign::start(Program::Express))).await;
    assert_passed_but(&report, &[&SKIPPED_OVER_HTTP_1[..], &SKIPPED_BEHIND_OTHERS].concat());
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_through_the_sidecar_before_fastapi() {
    let report = every_case(Behind::Foreign(Foreign::start(Program::FastApi))).await;
    assert_passed_but(&report, &[&SKIPPED_OVER_HTTP_1[..], &SKIPPED_BEHIND_OTHERS].concat());
}
