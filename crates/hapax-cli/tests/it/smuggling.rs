//! Unusual requests through the sidecar to third-party servers: each server parses as many requests as the sidecar accepted.

#[path = "../../../hapax-proxy/tests/it/smuggling/accepted.rs"]
mod accepted;

use std::io::{Read, Write};
use std::net::TcpStream;

use self::accepted::{ACCEPTED, LAST};
use crate::fixture::Fixture;
use crate::sidecar::{Origin, Sidecar, reply};
use crate::third_party::{Program, ThirdParty};

/// A request that servers refuse themselves, each with its own status.
const REFUSED_BY_SERVERS: &str = "a star";

/// The server forwards each request that it parses.
fn parses_the_accepted_requests(program: Program) {
    let server = ThirdParty::start(program);
    let addresses = server.addresses();
    let origin = Origin::start_at(addresses.origin, |_, _| reply(200, "ok"));
    let fixture = Fixture::bare();
    let sidecar = Sidecar::start(&fixture, &["--upstream", &format!("http://{}", addresses.server)]);
    for (name, requests, count) in ACCEPTED {
        let before = origin.seen().len();
        let mut stream = TcpStream::connect(sidecar.address()).unwrap();
        stream.write_all(format!("{requests}{LAST}").as_bytes()).unwrap();
        let mut answers = Vec::new();
        stream.read_to_end(&mut answers).unwrap();
        let answers = String::from_utf8(answers).unwrap().replace("HTTP/1.1 100 Continue", "");
        assert_eq!(answers.matches("HTTP/1.1 ").count(), count + 1, "{name}: {answers}");
        let taken = answers.matches("HTTP/1.1 200 ").count();
        assert!(taken == count + 1 || *name == REFUSED_BY_SERVERS, "{name}: {answers}");
        let seen = &origin.seen()[before..];
        assert_eq!(seen.len(), taken, "{name}: {seen:?}");
    }
}

#[test]
fn nginx_parses_the_accepted_requests() {
    parses_the_accepted_requests(Program::Nginx);
}

#[test]
fn express_parses_the_accepted_requests() {
    parses_the_accepted_requests(Program::Express);
}

#[test]
fn fastapi_parses_the_accepted_requests() {
    parses_the_accepted_requests(Program::FastApi);
}
