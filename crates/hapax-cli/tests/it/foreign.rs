//! Services that are not ours behind the sidecar: nginx, Express and FastAPI, one process of each for all cases.
//!
//! Each listens on many loopback addresses and passes what comes to one of them on to whoever listens there on another
//! port. So every case has an address to itself while it lasts, and a scripted origin behind it. What the sidecar speaks with is the
//! other server: its parser, its framing, its way with connections.

mod program;

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::binary::{end_group, started};
use crate::fixture::Fixture;

pub(crate) use program::{NGINX, Program};

/// Many more than there are cases at once, so that an address rests before it is used again: whatever is left of one
/// case is gone by then. Few enough for a process with a thousand files.
const ADDRESSES: u8 = 200;
/// A server that is silent for so long on a busy machine does not start any more.
const START_LIMIT: Duration = Duration::from_secs(120);
/// How long to wait before looking again whether it listens.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A running server. Dropping it ends it and whatever it started.
pub(crate) struct Foreign {
    pub(crate) program: Program,
    process: Child,
    ports: Ports,
    free: Free,
    _fixture: Fixture,
}

/// The numbers of the addresses that no case has, the longest unused first.
type Free = Arc<Mutex<VecDeque<u8>>>;

/// Where a server listens and where it finds origins, on every address.
#[derive(Clone, Copy)]
struct Ports {
    server: u16,
    origin: u16,
}

/// What one case has to itself, until it is dropped.
pub(crate) struct Place {
    /// Where the sidecar finds the server.
    pub(crate) server: SocketAddr,
    /// Where the server looks for the scripted origin.
    pub(crate) origin: SocketAddr,
    number: u8,
    free: Free,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.free.lock().unwrap().push_back(self.number);
    }
}

impl Foreign {
    /// Starts the server and waits until it listens.
    pub(crate) fn start(program: Program) -> Self {
        let ports = free_ports(program.address(0));
        let fixture = Fixture::bare();
        let mut command = program.command(fixture.path(), ports);
        let process = started(&mut command);
        let free = Arc::new(Mutex::new((0..ADDRESSES).collect()));
        let mut foreign = Self { program, process, ports, free, _fixture: fixture };
        foreign.wait();
        foreign
    }

    /// An address that no other case has.
    pub(crate) fn place(&self) -> Place {
        let number =
            self.free.lock().unwrap().pop_front().expect("there are more addresses than cases at once");
        let [server, origin] = [self.ports.server, self.ports.origin]
            .map(|port| SocketAddr::from((self.program.address(number), port)));
        Place { server, origin, number, free: self.free.clone() }
    }

    fn wait(&mut self) {
        let begun = Instant::now();
        let last = self.program.address(ADDRESSES - 1);
        while TcpStream::connect((last, self.ports.server)).is_err() {
            let ended = self.process.try_wait().unwrap();
            assert!(ended.is_none(), "{} ended by itself: {ended:?}", self.program.name());
            assert!(begun.elapsed() < START_LIMIT, "{} does not listen", self.program.name());
            sleep(LOOK_AGAIN);
        }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // The whole group, because nginx has workers.
        end_group(&mut self.process);
    }
}

/// Two ports that were free just now. No other test listens on these addresses.
fn free_ports(address: Ipv4Addr) -> Ports {
    let held = [(); 2].map(|()| TcpListener::bind((address, 0)).unwrap());
    let [server, origin] = held.map(|listener| listener.local_addr().unwrap().port());
    Ports { server, origin }
}
