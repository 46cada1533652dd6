//! How `hapax serve` ends: what has begun does so first.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use crate::binary::hapax;
use crate::fixture::{DAY, Fixture, HOUR, KEY};
use crate::sidecar::{Client, Origin, Sidecar, ask, reply};

const ORDER: &str = "{\"item\":\"book\"}";

/// Shorter than a drain may take, and longer than anything else does.
const PATIENCE: Duration = Duration::from_secs(20);

fn keyed(name: &str) -> String {
    format!("POST /orders\nIdempotency-Key: {KEY}-{name}")
}

/// A sidecar that was asked to end while a request is under way, which ends when it is let go.
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
        let (began, begun) = channel();
        let origin = Origin::start(move |_, _| {
            began.send(()).unwrap();
            gate.lock().unwrap().recv().unwrap();
            reply(201, "made")
        });
        let fixture = Fixture::bare();
        let mut sidecar = Sidecar::start(&fixture, &["--upstream", &origin.url()]);
        let mut client = Client::to(sidecar.address());
        client.send(&keyed("a"), ORDER);
        begun.recv().unwrap();
        sidecar.signal("TERM");
        sidecar.logged("asked to end");
        Self { fixture, sidecar, client, open, _origin: origin }
    }
}

#[test]
fn what_has_begun_ends_before_the_process_does() {
    let Ending { fixture, sidecar, mut client, open, _origin } = Ending::start();
    open.send(()).unwrap();
    assert_eq!(client.answer().body, "made");
    assert_eq!(sidecar.ended().0, Some(0));
    let listed = hapax(fixture.path(), &["records", "list", "--json"]).ended(0).json();
    assert_eq!(listed["records"][0]["state"], "completed");
}

#[test]
fn whoever_connects_while_it_ends_is_not_left_waiting() {
    let Ending { fixture: _fixture, sidecar, mut client, open, _origin } = Ending::start();
    // Refused, or hung up on where the connection came before the address was given up.
    if let Ok(mut late) = TcpStream::connect(sidecar.address()) {
        late.set_read_timeout(Some(PATIENCE)).unwrap();
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
fn what_does_not_end_in_time_becomes_uncertain_and_has_its_exit_code() {
    let (origin, begun, _gate) = Origin::holding();
    let fixture = Fixture::bare();
    std::fs::write(fixture.path().join("hapax.toml"), "[drain]\nlimit = \"100ms\"").unwrap();
    let sidecar = Sidecar::start(&fixture, &["--upstream", &origin.url()]);
    let mut client = Client::to(sidecar.address());
    client.send(&keyed("a"), ORDER);
    begun.recv().unwrap();
    sidecar.signal("TERM");
    let (code, log) = sidecar.ended();
    assert_eq!(code, Some(6), "{log:?}");
    assert!(log.iter().any(|line| line.contains("drain-incomplete")), "{log:?}");
    // The next owner of the store finds the claim of a process that is gone.
    fixture.open_and_close();
    let listed = hapax(fixture.path(), &["records", "list", "--json"]).ended(0).json();
    assert_eq!(listed["records"][0]["state"], "uncertain");
}

#[test]
fn whoever_asks_twice_does_not_wait() {
    let (origin, begun, _gate) = Origin::holding();
    let fixture = Fixture::bare();
    std::fs::write(fixture.path().join("hapax.toml"), "[drain]\nlimit = \"1d\"").unwrap();
    let mut sidecar = Sidecar::start(&fixture, &["--upstream", &origin.url()]);
    let mut client = Client::to(sidecar.address());
    client.send(&keyed("a"), ORDER);
    begun.recv().unwrap();
    sidecar.signal("TERM");
    sidecar.logged("asked to end");
    sidecar.signal("TERM");
    assert_eq!(sidecar.ended().0, Some(6));
}

#[test]
fn what_an_operator_began_is_written_down_to_its_end() {
    let mut id = None;
    let fixture = Fixture::prepared(HOUR, async |prepare| id = Some(prepare.completed("a", DAY).await));
    let path = format!("/api/v1/records/{}", id.unwrap());
    let mut sidecar = Sidecar::start(&fixture, &["--upstream", "http://127.0.0.1:9"]);
    let token = format!("Authorization: Bearer {}", sidecar.start["token"].as_str().unwrap());
    let shown = ask(sidecar.admin(), &format!("GET {path}\n{token}"), "").json();
    let body = serde_json::json!({ "version": shown["record"]["version"] }).to_string();

    let mut client = BufReader::new(TcpStream::connect(sidecar.admin()).unwrap());
    let length = body.len();
    write!(
        client.get_mut(),
        "POST {path}/delete HTTP/1.1\r\nhost: localhost\r\n{token}\r\ncontent-type: application/json\r\n\
         expect: 100-continue\r\ncontent-length: {length}\r\n\r\n"
    )
    .unwrap();
    let mut line = String::new();
    client.read_line(&mut line).unwrap();
    assert_eq!(line.trim(), "HTTP/1.1 100 Continue", "it has begun");
    sidecar.signal("TERM");
    sidecar.logged(" ended");
    client.get_mut().write_all(body.as_bytes()).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("HTTP/1.1 200 OK"), "{answer}");
    assert_eq!(sidecar.ended().0, Some(0));
    let log = std::fs::read_to_string(fixture.store().join("audit.jsonl")).unwrap();
    assert!(log.lines().last().unwrap().contains("\"done\""), "{log}");
}

#[test]
fn a_process_that_ends_is_measured_as_not_ready() {
    let Ending { fixture: _fixture, sidecar, mut client, open, _origin } = Ending::start();
    let metrics = ask(sidecar.admin(), "GET /metrics", "").body;
    assert!(metrics.contains("\nhapax_ready 0\n"), "{metrics}");
    open.send(()).unwrap();
    assert_eq!(client.answer().body, "made");
    assert_eq!(sidecar.ended().0, Some(0));
}
