//! A running `hapax serve`, a plain HTTP/1.1 client for it, and a scripted upstream.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

use crate::binary::{command, started};
use crate::fixture::Fixture;

fn serving(fixture: &Fixture, args: &[&str]) -> Command {
    let mut typed = command(fixture.path());
    typed.args(["serve", "--json", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]).args(args);
    typed
}

/// A sidecar process, which is killed on drop.
pub(crate) struct Sidecar {
    child: Child,
    pub(crate) start: Value,
    log: Receiver<String>,
    seen: Vec<String>,
}

impl Sidecar {
    /// Starts it on ports chosen by the system, in the directory of `fixture`.
    pub(crate) fn start(fixture: &Fixture, args: &[&str]) -> Self {
        Self::spawn(&mut serving(fixture, args))
    }

    /// The same without a cache: deletions by other processes are visible immediately.
    pub(crate) fn start_without_cache(fixture: &Fixture, args: &[&str]) -> Self {
        Self::spawn(serving(fixture, args).env("HAPAX_STORE_CACHE_BYTES", "0"))
    }

    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = started(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let (sender, log) = channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let mut documents = serde_json::Deserializer::from_reader(child.stdout.take().unwrap()).into_iter();
        match documents.next() {
            Some(Ok(start)) => Self { child, start, log, seen: Vec::new() },
            other => {
                let log: Vec<_> = log.iter().collect();
                panic!("it did not start: {other:?} {log:?}");
            }
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        address(&self.start["listen"])
    }

    pub(crate) fn admin(&self) -> SocketAddr {
        address(&self.start["console"])
    }

    /// Waits for a log line that contains `part`.
    pub(crate) fn logged(&mut self, part: &str) -> String {
        loop {
            match self.log.recv() {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if line.contains(part) {
                        return line;
                    }
                }
                Err(_) => panic!("{part:?} was never logged: {:#?}", self.seen),
            }
        }
    }

    /// A log line so far that contains `part`, if there is one.
    #[cfg(unix)]
    pub(crate) fn logged_so_far(&mut self, part: &str) -> Option<String> {
        let lines: Vec<_> = self.log.try_iter().collect();
        let found = lines.iter().find(|line| line.contains(part)).cloned();
        self.seen.extend(lines);
        found
    }

    #[cfg(unix)]
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let status = started(Command::new("kill").args(["-s", name, &pid])).wait();
        assert!(status.unwrap().success());
    }

    /// Waits for its exit code and all log lines.
    pub(crate) fn ended(mut self) -> (Option<i32>, Vec<String>) {
        let status = self.child.wait().unwrap();
        let mut log = std::mem::take(&mut self.seen);
        log.extend(self.log.iter());
        (status.code(), log)
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn address(url: &Value) -> SocketAddr {
    let url = url.as_str().unwrap();
    let (_scheme, address) = url.split_once("://").unwrap();
    address.trim_end_matches('/').parse().unwrap()
}

/// A request or response as it was received.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) first_line: String,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Message {
    /// Reads one message; none at the end of the stream.
    fn read(stream: &mut BufReader<TcpStream>) -> Option<Self> {
        let mut line = || {
            let mut line = String::new();
            (stream.read_line(&mut line).ok()? > 0).then(|| line.trim_end().to_owned())
        };
        let first_line = line()?;
        let mut headers = Vec::new();
        while let Some((name, value)) = line()?.split_once(": ") {
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        let mut message = Self { first_line, headers, body: String::new() };
        let length = message.header("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        stream.read_exact(&mut body).ok()?;
        message.body = String::from_utf8(body).unwrap();
        Some(message)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn status(&self) -> u16 {
        self.first_line.split(' ').nth(1).unwrap().parse().unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// One connection.
pub(crate) struct Client(BufReader<TcpStream>);

impl Client {
    pub(crate) fn to(address: SocketAddr) -> Self {
        Self(BufReader::new(TcpStream::connect(address).unwrap()))
    }

    /// Sends a request; `head` is its first line and further lines.
    pub(crate) fn send(&mut self, head: &str, body: &str) {
        let head = head.replacen(" HTTP/1.1", "", 1);
        let (first, rest) = head.split_once('\n').unwrap_or((&head, ""));
        let rest: String = rest.lines().map(|line| format!("{}\r\n", line.trim())).collect();
        let length = body.len();
        write!(
            self.0.get_mut(),
            "{first} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n{rest}\r\n{body}"
        )
        .unwrap();
    }

    pub(crate) fn answer(&mut self) -> Message {
        Message::read(&mut self.0).expect("an answer")
    }

    pub(crate) fn ask(&mut self, head: &str, body: &str) -> Message {
        self.send(head, body);
        self.answer()
    }
}

/// Sends one request on a new connection.
pub(crate) fn ask(address: SocketAddr, head: &str, body: &str) -> Message {
    Client::to(address).ask(head, body)
}

/// A scripted service: it returns the bytes of a response, or none to close the connection.
pub(crate) struct Origin {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Message>>>,
}

impl Origin {
    pub(crate) fn start(answer: impl Fn(&Message, usize) -> Option<String> + Send + Sync + 'static) -> Self {
        Self::start_at(([127, 0, 0, 1], 0).into(), answer)
    }

    /// Signals the arrival of a request and holds its response until the gate is dropped.
    pub(crate) fn holding() -> (Self, Receiver<()>, Sender<()>) {
        let (arrival, arrivals) = channel();
        let (open, gate) = channel();
        let gate = Mutex::new(gate);
        let origin = Self::start(move |_, _| {
            arrival.send(()).unwrap();
            let _ = gate.lock().unwrap().recv();
            None
        });
        (origin, arrivals, open)
    }

    pub(crate) fn start_at(
        address: SocketAddr,
        answer: impl Fn(&Message, usize) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<Message>>> = Arc::default();
        let (log, answer) = (seen.clone(), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (log, answer) = (log.clone(), answer.clone());
                thread::spawn(move || {
                    let mut stream = BufReader::new(stream);
                    while let Some(request) = Message::read(&mut stream) {
                        let number = {
                            let mut log = log.lock().unwrap();
                            log.push(request.clone());
                            log.len()
                        };
                        let Some(answer) = answer(&request, number) else { return };
                        if stream.get_mut().write_all(answer.as_bytes()).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { address, seen }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All requests so far.
    pub(crate) fn seen(&self) -> Vec<Message> {
        self.seen.lock().unwrap().clone()
    }
}

/// A response with this status and body.
pub(crate) fn reply(status: u16, body: &str) -> Option<String> {
    let length = body.len();
    Some(format!("HTTP/1.1 {status} As-Told\r\ncontent-length: {length}\r\nx-of-origin: yes\r\n\r\n{body}"))
}
