//! Graceful shutdown of `hapax serve`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use crate::binary::hapax;
use crate::fixture::{Fixture, KEY};
use crate::sidecar::{Client, Origin, Sidecar, ask, reply};

const ORDER: &str = "{\"item\":\"book\"}";

/// Shorter than the drain limit, and longer than everything else.
const TIMEOUT: Duration = Duration::from_secs(20);

fn keyed(name: &str) -> String {
    format!("POST /orders\nIdempotency-Key: {KEY}-{name}")
}

/// A draining sidecar with a request in flight, which finishes when it is released.
struct Ending {
    fixture: Fixture,
    sidecar: Sidecar,
    client: Client,
    open: Sender<()>,
    _origin: Origin,
}

impl Ending {
    fn start() -> Self {
        let (open, gate) = channel::<()>();
        let gate = Mutex::new(gate);
        let (arrival, arrivals) = channel();
        let origin = Origin::start(move |_, _| {
            arrival.send(()).unwrap();
            gate.lock().unwrap().recv().unwrap();
            reply(201, "made")
        });
        let fixture = Fixture::bare();
        let mut sidecar = Sidecar::start(&fixture, &["--upstream", &origin.url()]);
        let mut client = Client::to(sidecar.address());
        client.send(&keyed("a"), ORDER);
        arrivals.recv().unwrap();
        sidecar.signal("TERM");
        sidecar.logged("shutdown requested; draining");
        Self { fixture, sidecar, client, open, _origin: origin }
    }
}

#[test]
fn requests_in_flight_finish_before_the_process_ends() {
    let Ending { fixture, sidecar, mut client, open, _origin } = Ending::start();
    open.send(()).unwrap();
    assert_eq!(client.answer().body, "made");
    assert_eq!(sidecar.ended().0, Some(0));
    let listed = hapax(fixture.path(), &["records", "list", "--json"]).ended(0).json();
    assert_eq!(listed["records"][0]["state"], "completed");
}

#[test]
fn new_connections_are_refused_during_shutdown() {
    let Ending { fixture: _fixture, sidecar, mut client, open, _origin } = Ending::start();
    // Refused, or closed if the connection was accepted before the listener was.
    if let Ok(mut late) = TcpStream::connect(sidecar.address()) {
        late.set_read_timeout(Some(TIMEOUT)).unwrap();
        let got = late.read(&mut [0]);
        assert!(matches!(&got, Ok(0)) || got.as_ref().is_err_and(|error| !is_timeout(error)), "{got:?}");
    }
    open.send(()).unwrap();
    assert_eq!(client.answer().body, "made");
    assert_eq!(sidecar.ended().0, Some(0));
}

fn is_timeout(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{TimedOut, WouldBlock};
    matches!(error.kind(), TimedOut | WouldBlock)
}

#[test]
fn unfinished_operations_become_uncertain_and_have_an_exit_code() {
    let (origin, arrivals, _gate) = Origin::holding();
    let fixture = Fixture::bare();
    std::fs::write(fixture.path().join("hapax.toml"), "[drain]\nlimit = \"100ms\"").unwrap();
    let sidecar = Sidecar::start(&fixture, &["--upstream", &origin.url()]);
    let mut client = Client::to(sidecar.address());
    client.send(&keyed("a"), ORDER);
    arrivals.recv().unwrap();
    sidecar.signal("TERM");
    let (code, log) = sidecar.ended();
    assert_eq!(code, Some(6), "{log:?}");
    assert!(log.iter().any(|line| line.contains("drain-incomplete")), "{log:?}");
    // The next owner of the store finds the claim of the dead process.
    fixture.open_and_close();
    let listed = hapax(fixture.path(), &["records", "list", "--json"]).ended(0).json();
    assert_eq!(listed["records"][0]["state"], "uncertain");
}

#[test]
fn a_second_signal_ends_the_process_immediately() {
    let (origin, arrivals, _gate) = Origin::holding();
    let fixture = Fixture::bare();
    std::fs::write(fixture.path().join("hapax.toml"), "[drain]\nlimit = \"1d\"").unwrap();
    let mut sidecar = Sidecar::start(&fixture, &["--upstream", &origin.url()]);
    let mut client = Client::to(sidecar.address());
    client.send(&keyed("a"), ORDER);
    arrivals.recv().unwrap();
    sidecar.signal("TERM");
    sidecar.logged("shutdown requested; draining");
    sidecar.signal("TERM");
    assert_eq!(sidecar.ended().0, Some(6));
}

/// A client whose request body never ends, sent as far as the server requests it.
fn half_a_request(address: SocketAddr, head: &str) -> BufReader<TcpStream> {
    let mut client = BufReader::new(TcpStream::connect(address).unwrap());
    client.get_ref().set_read_timeout(Some(TIMEOUT)).unwrap();
    let head = head.replace('\n', "\r\n");
    write!(
        client.get_mut(),
        "{head}\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n"
    )
    .unwrap();
    let mut line = String::new();
    client.read_line(&mut line).unwrap();
    assert_eq!(line.trim(), "HTTP/1.1 100 Continue");
    client.get_mut().write_all(b"half").unwrap();
    client
}

/// A request with an incomplete body has not run: it is refused immediately, whatever the drain limit.
#[test]
fn x_13_an_incomplete_request_does_not_delay_the_shutdown() {
    let origin = Origin::start(|_, _| reply(201, "made"));
    let fixture = Fixture::bare();
    std::fs::write(
        fixture.path().join("hapax.toml"),
        "[drain]\nlimit = \"1d\"\n[transport]\nbody_idle = \"1d\"",
    )
    .unwrap();
    let sidecar = Sidecar::start(&fixture, &["--upstream", &origin.url()]);
    let token = sidecar.start["token"].as_str().unwrap();
    let mut keyed = half_a_request(sidecar.address(), &keyed("a").replacen('\n', " HTTP/1.1\n", 1));
    let mut passing = half_a_request(sidecar.address(), "POST /uploads HTTP/1.1");
    let search = format!(
        "POST /api/v1/records/search HTTP/1.1\nAuthorization: Bearer {token}\nContent-Type: application/json"
    );
    let _operator = half_a_request(sidecar.admin(), &search);
    sidecar.signal("TERM");
    let mut answers = [String::new(), String::new()];
    for (client, answer) in [&mut keyed, &mut passing].into_iter().zip(&mut answers) {
        let _reset = client.read_to_string(answer);
    }
    let [keyed, passing] = answers;
    assert!(keyed.contains("HTTP/1.1 503 ") && keyed.contains("/errors/draining\""), "{keyed}");
    assert!(passing.contains("HTTP/1.1 408 ") && passing.contains("/errors/uncertain\""), "{passing}");
    assert_eq!(sidecar.ended().0, Some(0));
    let listed = hapax(fixture.path(), &["records", "list", "--json"]).ended(0).json();
    assert_eq!(listed["records"], serde_json::json!([]));
}

#[test]
fn a_draining_process_is_not_ready() {
    let Ending { fixture: _fixture, sidecar, mut client, open, _origin } = Ending::start();
    let metrics = ask(sidecar.admin(), "GET /metrics", "").body;
    assert!(metrics.contains("\nhapax_ready 0\n"), "{metrics}");
    open.send(()).unwrap();
    assert_eq!(client.answer().body, "made");
    assert_eq!(sidecar.ended().0, Some(0));
}
