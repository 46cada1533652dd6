//! Unusual requests through the sidecar to servers that are not ours: each finds as many as were admitted.

#[path = "../../../hapax-proxy/tests/it/smuggling/accepted.rs"]
mod accepted;

use std::io::{Read, Write};
use std::net::TcpStream;

use self::accepted::{ACCEPTED, LAST};
use crate::fixture::Fixture;
use crate::foreign::{Foreign, Program};
use crate::sidecar::{Origin, Sidecar, reply};

/// What servers refuse themselves, each in its own way.
const REFUSED_BEHIND: &str = "a star";

/// The server passes on each request that it finds in what it gets.
fn finds_what_was_admitted(program: Program) {
    let foreign = Foreign::start(program);
    let place = foreign.place();
    let origin = Origin::start_at(place.origin, |_, _| reply(200, "ok"));
    let fixture = Fixture::bare();
    let sidecar = Sidecar::start(&fixture, &["--upstream", &format!("http://{}", place.server)]);
    for (name, requests, count) in ACCEPTED {
        let before = origin.seen().len();
        let mut stream = TcpStream::connect(sidecar.address()).unwrap();
        stream.write_all(format!("{requests}{LAST}").as_bytes()).unwrap();
        let mut answers = Vec::new();
        stream.read_to_end(&mut answers).unwrap();
        let answers = String::from_utf8(answers).unwrap().replace("HTTP/1.1 100 Continue", "");
        assert_eq!(answers.matches("HTTP/1.1 ").count(), count + 1, "{name}: {answers}");
        let taken = answers.matches("HTTP/1.1 200 ").count();
        assert!(taken == count + 1 || *name == REFUSED_BEHIND, "{name}: {answers}");
        let seen = &origin.seen()[before..];
        assert_eq!(seen.len(), taken, "{name}: {seen:?}");
    }
}

#[test]
fn nginx_finds_what_was_admitted() {
    finds_what_was_admitted(Program::Nginx);
}

#[test]
fn express_finds_what_was_admitted() {
    finds_what_was_admitted(Program::Express);
}

#[test]
fn fastapi_finds_what_was_admitted() {
    finds_what_was_admitted(Program::FastApi);
}
