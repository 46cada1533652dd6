//! Every case of `spec/cases/http` through `hapax serve`: a process for each case, and the suite's origin on a socket
//! behind it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use hapax_core::BoxFuture;
use hapax_testkit::http_suite::{
    self, CASE, Case, Control, Feature, Origin, Report, Running, Server, Settings, StartError, Surface,
};
use serde_json::json;

use crate::fixture::Fixture;
use crate::sidecar::Sidecar;

/// What the sidecar speaks with the origin.
#[derive(Clone, Copy)]
enum Behind {
    Http1,
    Http2,
}

impl Behind {
    fn protocol(self) -> &'static str {
        match self {
            Self::Http1 => "http1",
            Self::Http2 => "http2",
        }
    }
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

impl Surface for Behind {
    fn name(&self) -> &str {
        match self {
            Self::Http1 => "sidecar",
            Self::Http2 => "sidecar-http2",
        }
    }

    fn can(&self) -> &[Feature] {
        match self {
            // gRPC is nothing without HTTP/2 all the way.
            Self::Http1 => CAN.split_last().map_or(&[], |(_grpc, rest)| rest),
            Self::Http2 => &CAN,
        }
    }

    fn skips(&self, case: &Case) -> Option<String> {
        let why = match case.id.as_str() {
            "m-04-connect-passes" => NO_TUNNEL,
            "x-13-draining" => NOBODY_LEFT,
            _ => return None,
        };
        Some(why.to_owned())
    }

    async fn start(&self, settings: &Settings, origin: Origin) -> Result<Running, StartError> {
        let origin = Server::start(origin).await?;
        let file = toml::to_string(&json!({
            "upstream": format!("http://{}", origin.addr()),
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
        let serving = Serving { sidecar: Mutex::new(sidecar), _fixture: fixture, _origin: origin };
        Ok(Running { addr, control: Box::new(serving) })
    }
}

/// Everything that ends with the case.
struct Serving {
    sidecar: Mutex<Sidecar>,
    _fixture: Fixture,
    _origin: Server,
}

impl Control for Serving {
    fn drain(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            tokio::task::block_in_place(|| {
                let mut sidecar = self.sidecar.lock().unwrap_or_else(PoisonError::into_inner);
                sidecar.signal("TERM");
                sidecar.logged("asked to end");
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_through_the_sidecar() {
    let skipped = [
        ("the surface cannot clock", 26),
        ("the surface cannot clock, store-faults", 2),
        ("the surface cannot gate", 8),
        ("the surface cannot grpc", 10),
        ("the surface cannot grpc, store-faults", 1),
        ("the surface cannot panics", 4),
        ("the surface cannot store-faults", 14),
        (NO_TUNNEL, 1),
        (NOBODY_LEFT, 2),
    ];
    assert_passed_but(&every_case(Behind::Http1).await, &skipped);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_through_the_sidecar_before_a_service_that_speaks_http_2() {
    let skipped = [
        ("the surface cannot clock", 26),
        ("the surface cannot clock, store-faults", 2),
        ("the surface cannot gate", 8),
        ("the surface cannot panics", 4),
        ("the surface cannot store-faults", 15),
        (NO_TUNNEL, 1),
        (NOBODY_LEFT, 2),
    ];
    assert_passed_but(&every_case(Behind::Http2).await, &skipped);
}
