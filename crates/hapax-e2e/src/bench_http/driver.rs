//! The load: 64 connections, each with one request in flight at all times, on one thread without a runtime. A request
//! costs it less than any of the services, so that these limit the rate.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::event::{Timespec, epoll};

use super::{OTHER_CORE, count, threads};

/// Connections that are open at all times.
const CONNECTIONS: usize = 64;
/// Different keys in a load of replays.
const KEYS: u64 = 1000;
/// The driver never blocks in epoll: its wake-ups would cost the server CPU time. It polls, handles all events, and sleeps
/// for this long: far shorter than the server needs for all connections, so that it never runs out of requests.
const REST: Duration = Duration::from_micros(20);
const NOT_AT_ALL: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
/// A response is far smaller.
const BUFFER: usize = 4096;

const HEAD: &str = " HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n";
const BODY: &str = r#"{"item":"book","amount":2,"customer":"c-77","note":"leave at the door"}"#;

/// The keys that are sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Key {
    /// A new one with every request.
    Fresh,
    /// One of a thousand that were answered before.
    Known,
    /// None.
    None,
}

/// The path of the orders service.
pub(crate) const ORDERS: &str = "/orders";

/// The target, keys and length of a load.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The address of the service.
    pub to: SocketAddr,
    /// The path of every request.
    pub path: &'static str,
    /// The keys.
    pub key: Key,
    /// The length.
    pub span: Duration,
}

/// The result of a load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Driven {
    pub(crate) requests: u64,
    pub(crate) took: Duration,
    /// The median of the latency.
    pub(crate) p50: Duration,
    /// The 99th percentile of the latency.
    pub(crate) p99: Duration,
}

/// Never used twice in all rounds.
static NEXT_KEY: AtomicU64 = AtomicU64::new(KEYS);

/// Sends so many requests that every key of a load of replays is finished before the measurement. The other loads send as
/// many, so that all begin equally warm.
pub(crate) fn warm_up(load: &Load) -> Result<()> {
    let load = *load;
    on_the_other_core(move || run(&load, |driven| driven >= 2 * KEYS).map(drop))
}

/// Sends the load and counts the answers. Anything but `201` is an error.
pub(crate) fn drive(load: &Load) -> Result<Driven> {
    let load = *load;
    on_the_other_core(move || {
        let started = Instant::now();
        let mut waits = run(&load, |_| started.elapsed() >= load.span)?;
        let (requests, took) = (waits.len() as u64, started.elapsed());
        let mut quantile = |percent: usize| {
            let at = waits.len() * percent / 100;
            *waits.select_nth_unstable(at).1
        };
        Ok(Driven { requests, took, p50: quantile(50), p99: quantile(99) })
    })
}

fn on_the_other_core<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> T {
    let driver = std::thread::spawn(|| {
        threads::pin(OTHER_CORE);
        count::leave_out_this_thread();
        act()
    });
    driver.join().expect("the driver ends")
}

struct Connection {
    stream: TcpStream,
    buffer: Box<[u8; BUFFER]>,
    filled: usize,
    sent: Instant,
}

/// The latencies of all requests that were answered until `is_over`.
fn run(load: &Load, is_over: impl Fn(u64) -> bool) -> Result<Vec<Duration>> {
    let poll = epoll::create(epoll::CreateFlags::empty()).expect("the kernel gives an epoll");
    let mut connections: Vec<Connection> =
        (0..CONNECTIONS).map(|_| Connection::open(load.to)).collect::<Result<_>>()?;
    let mut request = Vec::new();
    let mut sent = 0;
    for (index, connection) in connections.iter_mut().enumerate() {
        let data = epoll::EventData::new_u64(index as u64);
        epoll::add(&poll, &connection.stream, data, epoll::EventFlags::IN).expect("a socket can be watched");
        connection.send(write_request(&mut request, load, sent))?;
        sent += 1;
    }
    let mut waits = Vec::new();
    let mut open = CONNECTIONS;
    let mut events = Vec::with_capacity(CONNECTIONS);
    while open > 0 {
        std::thread::sleep(REST);
        events.clear();
        let news = rustix::buffer::spare_capacity(&mut events);
        epoll::wait(&poll, news, Some(&NOT_AT_ALL)).expect("the kernel reports events");
        let is_over = is_over(waits.len() as u64);
        for event in &events {
            let connection = &mut connections[event.data.u64() as usize];
            if !connection.is_answered()? {
                continue;
            }
            waits.push(connection.sent.elapsed());
            if is_over {
                open -= 1;
            } else {
                connection.send(write_request(&mut request, load, sent))?;
                sent += 1;
            }
        }
    }
    Ok(waits)
}

fn write_request<'a>(request: &'a mut Vec<u8>, load: &Load, sent: u64) -> &'a [u8] {
    request.clear();
    let number = match load.key {
        Key::Fresh => Some(NEXT_KEY.fetch_add(1, Ordering::Relaxed)),
        Key::Known => Some(sent % KEYS),
        Key::None => None,
    };
    for part in ["POST ", load.path, HEAD] {
        request.extend_from_slice(part.as_bytes());
    }
    if let Some(number) = number {
        write!(request, "Idempotency-Key: \"order-{number:016x}\"\r\n").expect("memory can be written");
    }
    write!(request, "Content-Length: {}\r\n\r\n{BODY}", BODY.len()).expect("memory can be written");
    request
}

impl Connection {
    fn open(to: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(to).context("the server does not listen")?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self { stream, buffer: Box::new([0; BUFFER]), filled: 0, sent: Instant::now() })
    }

    /// A request is smaller than a socket's buffer, which is empty: the last one was answered.
    fn send(&mut self, request: &[u8]) -> Result<()> {
        self.sent = Instant::now();
        self.stream.write_all(request).context("a request cannot be sent")
    }

    fn is_answered(&mut self) -> Result<bool> {
        match self.stream.read(&mut self.buffer[self.filled..]) {
            Ok(0) => bail!("the server closed a connection"),
            Ok(read) => self.filled += read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error).context("the connection broke"),
        }
        let received = &self.buffer[..self.filled];
        if !is_whole(received)? {
            return Ok(false);
        }
        ensure!(received.starts_with(b"HTTP/1.1 201"), "{}", String::from_utf8_lossy(received));
        self.filled = 0;
        Ok(true)
    }
}

/// Whether a response with a length is complete.
fn is_whole(received: &[u8]) -> Result<bool> {
    const LENGTH: &[u8] = b"content-length: ";
    let Some(head) = received.windows(4).position(|end| end == b"\r\n\r\n") else { return Ok(false) };
    let at = received[..head].windows(LENGTH.len()).position(|name| name.eq_ignore_ascii_case(LENGTH));
    let digits = &received[at.context("a response has no length")? + LENGTH.len()..head];
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let length = length.fold(0, |value, digit| value * 10 + usize::from(digit - b'0'));
    Ok(received.len() == head + 4 + length)
}
