//! [`Counting`]: a proxy between a store and its server that counts round trips, and drops replies on request.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The server's messages until it is ready, and `ReadyForQuery`, in PostgreSQL's protocol.
const REQUESTS: [u8; 2] = [b'S', b'Q'];
const READY: u8 = b'Z';

/// Forwards what a client sends, then everything the server replies, and counts that as one round trip: statements that are
/// sent together count as one.
pub(crate) struct Counting {
    pub(crate) port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    trips: AtomicUsize,
    /// The most statements in one of them.
    together_max: AtomicUsize,
    /// How many replies are forwarded before any is dropped.
    to_pass: AtomicUsize,
    /// How many replies are still to be dropped.
    to_lose: AtomicUsize,
}

impl Counting {
    pub(crate) fn before(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let counting = Self { port: listener.local_addr().unwrap().port(), shared: Arc::default() };
        let shared = counting.shared.clone();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (shared, server) = (shared.clone(), TcpStream::connect(("127.0.0.1", port)).unwrap());
                thread::spawn(move || pass(client, server, &shared));
            }
        });
        counting
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres?listen=off", self.port)
    }

    /// Round trips since the last call.
    pub(crate) fn trips(&self) -> usize {
        self.shared.trips.swap(0, Ordering::SeqCst)
    }

    /// The most statements in flight on one connection since the last call.
    pub(crate) fn together_max(&self) -> usize {
        self.shared.together_max.swap(0, Ordering::SeqCst)
    }

    /// Breaks the connection instead of forwarding the next replies, so many of them. The server has sent them.
    pub(crate) fn lose(&self, answers: usize) {
        self.shared.to_lose.store(answers, Ordering::SeqCst);
    }

    /// The same for one reply, after so many that are forwarded.
    pub(crate) fn lose_one_after(&self, passed: usize) {
        self.shared.to_pass.store(passed, Ordering::SeqCst);
        self.lose(1);
    }

    /// How many replies are still to be dropped.
    pub(crate) fn left_to_lose(&self) -> usize {
        self.shared.to_lose.load(Ordering::SeqCst)
    }
}

/// Forwards until either side ends.
fn pass(mut client: TcpStream, mut server: TcpStream, shared: &Shared) -> Option<()> {
    let mut buffer = vec![0; 1 << 20];
    // The startup message has no type, and its reply ends when the server is ready.
    let length = client.read(&mut buffer).ok().filter(|length| *length > 0)?;
    server.write_all(&buffer[..length]).ok()?;
    client.write_all(&answer(&mut server, 1)?).ok()?;
    loop {
        let length = client.read(&mut buffer).ok().filter(|length| *length > 0)?;
        server.write_all(&buffer[..length]).ok()?;
        let requests = kinds(&buffer[..length]).filter(|kind| REQUESTS.contains(kind)).count();
        if requests > 0 {
            shared.trips.fetch_add(1, Ordering::SeqCst);
            shared.together_max.fetch_max(requests, Ordering::SeqCst);
            let answer = answer(&mut server, requests)?;
            let take = |from: &AtomicUsize| {
                from.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
            };
            if !take(&shared.to_pass) && take(&shared.to_lose) {
                return None;
            }
            client.write_all(&answer).ok()?;
        }
    }
}

/// The server's messages until it has been ready so many times.
fn answer(server: &mut TcpStream, mut requests: usize) -> Option<Vec<u8>> {
    let mut answer = Vec::new();
    while requests > 0 {
        let mut head = [0; 5];
        server.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes(head[1..].try_into().unwrap()) as usize;
        let mut body = vec![0; length - 4];
        server.read_exact(&mut body).ok()?;
        if head[0] == READY {
            requests -= 1;
        }
        answer.extend_from_slice(&head);
        answer.extend_from_slice(&body);
    }
    Some(answer)
}

/// The types of the messages in one piece from the client.
fn kinds(mut bytes: &[u8]) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        let (kind, rest) = bytes.split_first()?;
        let length = u32::from_be_bytes(rest.get(..4)?.try_into().unwrap()) as usize;
        bytes = rest.get(length..).unwrap_or_default();
        Some(*kind)
    })
}
