//! Third-party servers behind the sidecar: nginx, Express and FastAPI, one process of each for all cases.
//!
//! Each server listens on many loopback addresses and forwards requests to another port of the same address. A case has
//! one address to itself, with a scripted origin on that port. The sidecar communicates with the third-party server: its
//! parser, its framing and its connection handling.

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

/// Many more than concurrent cases, so that connections of an earlier case are closed before an address is reused. Few
/// enough for a process with a thousand files.
const ADDRESSES: u8 = 200;
/// A server that does not listen after this time, even on a busy machine, has failed to start.
const START_LIMIT: Duration = Duration::from_secs(120);
/// The interval of connection attempts.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A running server. Dropping it ends its process group.
pub(crate) struct ThirdParty {
    pub(crate) program: Program,
    process: Child,
    ports: Ports,
    free: Free,
    _fixture: Fixture,
}

/// The numbers of unused addresses, the least recently used first.
type Free = Arc<Mutex<VecDeque<u8>>>;

/// The ports of the server and of the origins, on every address.
#[derive(Clone, Copy)]
struct Ports {
    server: u16,
    origin: u16,
}

/// The addresses of one case, until it is dropped.
pub(crate) struct CaseAddresses {
    /// The address of the server, for the sidecar.
    pub(crate) server: SocketAddr,
    /// The address of the scripted origin, for the server.
    pub(crate) origin: SocketAddr,
    number: u8,
    free: Free,
}

impl Drop for CaseAddresses {
    fn drop(&mut self) {
        self.free.lock().unwrap().push_back(self.number);
    }
}

impl ThirdParty {
    /// Starts the server and waits until it listens.
    pub(crate) fn start(program: Program) -> Self {
        let ports = free_ports(program.address(0));
        let fixture = Fixture::bare();
        let mut command = program.command(fixture.path(), ports);
        let process = started(&mut command);
        let free = Arc::new(Mutex::new((0..ADDRESSES).collect()));
        let mut server = Self { program, process, ports, free, _fixture: fixture };
        server.wait();
        server
    }

    /// Reserves an address.
    pub(crate) fn addresses(&self) -> CaseAddresses {
        let number =
            self.free.lock().unwrap().pop_front().expect("there are more addresses than concurrent cases");
        let [server, origin] = [self.ports.server, self.ports.origin]
            .map(|port| SocketAddr::from((self.program.address(number), port)));
        CaseAddresses { server, origin, number, free: self.free.clone() }
    }

    fn wait(&mut self) {
        let started_at = Instant::now();
        let last = self.program.address(ADDRESSES - 1);
        while TcpStream::connect((last, self.ports.server)).is_err() {
            let ended = self.process.try_wait().unwrap();
            assert!(ended.is_none(), "{} has exited: {ended:?}", self.program.name());
            assert!(started_at.elapsed() < START_LIMIT, "{} does not listen", self.program.name());
            sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for ThirdParty {
    fn drop(&mut self) {
        // The whole group, because nginx has workers.
        end_group(&mut self.process);
    }
}

/// Two free ports. No other test listens on these addresses.
fn free_ports(address: Ipv4Addr) -> Ports {
    let held = [(); 2].map(|()| TcpListener::bind((address, 0)).unwrap());
    let [server, origin] = held.map(|listener| listener.local_addr().unwrap().port());
    Ports { server, origin }
}
