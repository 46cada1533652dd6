//! nginx as a gateway between the sidecar and the service, with its own responses 502 and 504.

use std::fs::{self, Permissions};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::binary::{end_group, started};
use crate::fixture::Fixture;
use crate::sidecar::{Message, Origin, Sidecar, ask, reply};
use crate::third_party::NGINX;

/// No other test listens on this address, so its free ports stay free.
const HOST: Ipv4Addr = Ipv4Addr::new(127, 84, 0, 1);
/// A server that does not listen after this time, even on a busy machine, has failed to start.
const START_LIMIT: Duration = Duration::from_secs(120);

/// nginx in front of one service. Dropping it ends it and its workers.
struct Gateway {
    process: Child,
    address: SocketAddr,
    _fixture: Fixture,
}

impl Gateway {
    fn start(service: &Origin) -> Self {
        assert!(Path::new(NGINX).is_file(), "{NGINX} is missing: apt-get install -y nginx-light");
        let address = TcpListener::bind((HOST, 0)).unwrap().local_addr().unwrap();
        let fixture = Fixture::bare();
        fs::write(fixture.path().join("nginx.conf"), settings(address, service.address)).unwrap();
        // If nginx runs as root, its workers run as another user, who stores large bodies here.
        fs::set_permissions(fixture.path(), Permissions::from_mode(0o755)).unwrap();
        let mut nginx = Command::new(NGINX);
        nginx.arg("-p").arg(fixture.path()).arg("-c").arg(fixture.path().join("nginx.conf"));
        nginx.args(["-e", "stderr"]).stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
        let mut gateway = Self { process: started(&mut nginx), address, _fixture: fixture };
        let started_at = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(gateway.process.try_wait().unwrap().is_none(), "nginx has exited");
            assert!(started_at.elapsed() < START_LIMIT, "nginx does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        gateway
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        end_group(&mut self.process);
    }
}

/// A typical configuration with a short timeout.
fn settings(address: SocketAddr, service: SocketAddr) -> String {
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {kind};\n"))
        .concat();
    format!(
        "daemon off;
worker_processes 1;
pid nginx.pid;
error_log stderr crit;
events {{ worker_connections 64; }}
http {{
    access_log off;
    {temporary}
    server {{
        listen {address};
        location / {{
            proxy_pass http://{service};
            proxy_http_version 1.1;
            proxy_read_timeout 300ms;
        }}
    }}
}}
"
    )
}

fn order(sidecar: &Sidecar) -> Message {
    ask(sidecar.address(), "POST /orders\nIdempotency-Key: k", "{}")
}

/// The service executes the order and nginx responds with `status`: the retry must not reach the service.
fn check(service: &Origin, status: u16) {
    let gateway = Gateway::start(service);
    let fixture = Fixture::bare();
    let sidecar = Sidecar::start(&fixture, &["--upstream", &format!("http://{}", gateway.address)]);
    let first = order(&sidecar);
    assert_eq!(first.status(), status, "{first:?}");
    assert!(first.header("server").is_some_and(|server| server.starts_with("nginx")), "{first:?}");
    let retry = order(&sidecar);
    assert_eq!(retry.status(), 409, "{retry:?}");
    assert_eq!(retry.json()["type"], "https://hapax.dev/errors/uncertain");
    assert_eq!(service.seen().len(), 1, "the order is executed once");
}

#[test]
fn x_11_a_bad_gateway_releases_no_key() {
    let service = Origin::start(|_, number| if number == 1 { None } else { reply(201, "second run") });
    check(&service, 502);
}

#[test]
fn x_11_a_gateway_timeout_releases_no_key() {
    let (service, _arrivals, _gate) = Origin::holding();
    check(&service, 504);
}
