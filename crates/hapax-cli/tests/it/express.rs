//! Express 5 behind the sidecar: paths that Express treats as equal.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use crate::binary::started;
use crate::fixture::Fixture;
use crate::sidecar::{Message, Sidecar, ask};
use crate::tools::{installed_as_in_guide, needs};

/// Spellings that Express matches with `/orders`.
const SPELLINGS: [&str; 4] = ["/orders/", "/ORDERS", "/Orders/", "/oRDERS"];

/// A service that creates an order for every request. Dropping it ends it.
struct Express {
    process: Child,
    address: SocketAddr,
}

impl Express {
    fn start() -> Self {
        needs("npm", "nodejs npm");
        let installed = installed_as_in_guide("express");
        // Node resolves modules relative to the program.
        let program = installed.join("express_paths.mjs");
        fs::write(&program, include_str!("express_paths.mjs")).unwrap();
        let mut node = Command::new("node");
        let mut process = started(node.arg(program).stdin(Stdio::null()).stdout(Stdio::piped()));
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], port.trim().parse().expect("Express did not start")));
        Self { process, address }
    }

    /// The number of orders.
    fn made(&self) -> String {
        ask(self.address, "GET /made", "").body
    }
}

impl Drop for Express {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A sidecar whose route `/orders` requires a key.
fn sidecar(fixture: &Fixture, express: &Express, defaults: &str) -> Sidecar {
    let file = format!("[defaults]\n{defaults}\n[[route]]\npath = \"/orders\"\nkey = \"required\"\n");
    fs::write(fixture.path().join("hapax.toml"), file).unwrap();
    Sidecar::start(fixture, &["--upstream", &format!("http://{}", express.address)])
}

fn order(sidecar: &Sidecar, path: &str, key: Option<&str>) -> Message {
    let key = key.map(|key| format!("\nIdempotency-Key: {key}")).unwrap_or_default();
    ask(sidecar.address(), &format!("POST {path}{key}"), "")
}

#[test]
fn m_01_no_spelling_of_a_path_bypasses_its_route() {
    let express = Express::start();
    for path in SPELLINGS {
        assert_eq!(ask(express.address, &format!("POST {path}"), "").status(), 201, "{path}: Express itself");
    }
    assert_eq!(express.made(), "4");
    let fixture = Fixture::bare();
    let sidecar = sidecar(&fixture, &express, "path_case = \"ignore\"");
    for path in SPELLINGS {
        let refused = order(&sidecar, path, None);
        assert_eq!(refused.status(), 400, "{path}");
        assert_eq!(refused.json()["type"], "https://hapax.dev/errors/key-missing", "{path}");
    }
    assert_eq!(express.made(), "4");
}

#[test]
fn s_01_a_service_that_ignores_slash_and_case_runs_a_key_once() {
    let express = Express::start();
    let fixture = Fixture::bare();
    let sidecar = sidecar(&fixture, &express, "path_case = \"ignore\"");
    assert_eq!(order(&sidecar, "/orders", Some("k")).body, "order 1");
    for path in SPELLINGS {
        let refused = order(&sidecar, path, Some("k"));
        assert_eq!(refused.status(), 422, "{path}");
        assert_eq!(refused.json()["type"], "https://hapax.dev/errors/key-reused", "{path}");
    }
    assert_eq!(order(&sidecar, "/orders", Some("k")).header("x-idempotent-replayed"), Some("true"));
    assert_eq!(express.made(), "1");
}

/// By default, a trailing slash is ignored and case is not.
#[test]
fn m_01_s_01_a_trailing_slash_is_ignored() {
    let express = Express::start();
    let fixture = Fixture::bare();
    let sidecar = sidecar(&fixture, &express, "");
    assert_eq!(order(&sidecar, "/orders/", None).status(), 400);
    assert_eq!(order(&sidecar, "/orders/", Some("k")).body, "order 1");
    assert_eq!(order(&sidecar, "/orders", Some("k")).status(), 422);
    assert_eq!(express.made(), "1");
}
