//! The systemd unit and the compose examples, as far as they can be tested without systemd and Docker.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hapax_testkit::servers::{PostgresServer, RedisServer};

use super::{COMPOSE, folder, text, tool};
use crate::binary::{alone, command, hapax, started};
use crate::fixture::{Fixture, KEY};
use crate::sidecar::{Sidecar, ask};
use crate::tools::needs;

/// Notifications to the service manager arrive within this time.
const NOTICE_LIMIT: Duration = Duration::from_secs(120);
/// In tenths of systemd's exposure level, of which 100 is the worst.
const EXPOSURE_MAX: &str = "--threshold=15";

/// The unit with the binary under test, in `fixture`.
fn unit(fixture: &Fixture) -> String {
    let unit = text("systemd/hapax.service").replace("/usr/bin/hapax", env!("CARGO_BIN_EXE_hapax"));
    let path = fixture.path().join("hapax.service");
    fs::write(&path, unit).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn systemd_accepts_the_unit_and_its_exposure_is_low() {
    let fixture = Fixture::bare();
    let unit = unit(&fixture);
    let verified = tool("systemd-analyze", "systemd", &["verify", "--man=no", &unit]).ended(0);
    assert!(!verified.stderr.contains("hapax.service"), "{verified:?}");
    tool("systemd-analyze", "systemd", &["security", "--offline=true", EXPOSURE_MAX, &unit]).ended(0);
}

#[test]
fn the_unit_starts_a_sidecar_that_notifies_readiness_and_shutdown() {
    let fixture = Fixture::bare();
    let unit = text("systemd/hapax.service");
    assert!(unit.contains("\nType=notify\n"), "the service manager waits for readiness");
    let here = |text: &str| {
        let dir = fixture.path().to_str().unwrap();
        text.replace("/etc/hapax", dir).replace("/var/lib/hapax", &format!("{dir}/state")).replace("%d", dir)
    };
    fs::copy(folder().join("systemd/hapax.toml"), fixture.path().join("hapax.toml")).unwrap();
    fs::write(fixture.path().join("admin-token"), "0123456789abcdef0123456789abcdef").unwrap();
    let socket = fixture.path().join("notify");
    let manager = UnixDatagram::bind(&socket).unwrap();
    manager.set_read_timeout(Some(NOTICE_LIMIT)).unwrap();

    let mut typed = command(fixture.path());
    let values = |name: &str| {
        unit.lines().filter_map(|line| line.strip_prefix(&format!("{name}="))).map(here).collect::<Vec<_>>()
    };
    for (name, value) in values("Environment").iter().map(|set| set.split_once('=').unwrap()) {
        typed.env(name, value);
    }
    let state = values("WorkingDirectory").remove(0);
    fs::create_dir(&state).unwrap();
    let line = values("ExecStart").remove(0);
    typed.args(line.split(' ').skip(1)).args(["--json", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    let sidecar = Sidecar::spawn(typed.current_dir(&state).env("NOTIFY_SOCKET", &socket));
    assert_eq!(notice(&manager), "READY=1");
    assert!(fixture.path().join("state/hapax-data/hapax.db").exists());
    sidecar.signal("TERM");
    assert_eq!(notice(&manager), "STOPPING=1");
    assert_eq!(sidecar.ended().0, Some(0));
}

#[test]
fn files_take_precedence_over_the_packages() {
    let fixture = Fixture::bare();
    for (package, set) in [("systemd/hapax.service", "Environment="), ("docker/Dockerfile", "ENV ")] {
        let text = text(package);
        let sets = text.lines().filter_map(|line| line.strip_prefix(set)).flat_map(|line| line.split(' '));
        let names: Vec<_> = sets.map(|set| set.split_once('=').unwrap().0).collect();
        // The source of the token depends on the deployment; everything else is set in the file.
        assert!(
            names.iter().all(|name| ["HAPAX_CONFIG", "HAPAX_ADMIN_TOKEN_FILE"].contains(name)),
            "{names:?}"
        );
    }
    let file = folder().join("docker/hapax.toml");
    let args = ["check", "--json", "--config", file.to_str().unwrap()];
    let config = hapax(fixture.path(), &args).ended(0).json()["config"].clone();
    assert_eq!(
        (&config["listen"], &config["store"]["url"]),
        (&"0.0.0.0:8080".into(), &"file:./hapax-data".into())
    );
}

#[test]
fn sidecars_with_a_shared_store_have_volumes_for_audit_logs() {
    for compose in &COMPOSE[1..] {
        let text = text(compose);
        for name in ["first", "second"] {
            assert!(text.contains(&format!("- {name}-audit:/var/lib/hapax\n")), "{compose}: {name}");
        }
    }
}

fn notice(manager: &UnixDatagram) -> String {
    let mut buffer = [0; 256];
    let length = manager.recv(&mut buffer).expect("a notification");
    String::from_utf8_lossy(&buffer[..length]).trim().to_owned()
}

#[test]
fn the_service_of_the_example_is_called_once() {
    needs("node", "nodejs");
    let mut node = Command::new("node");
    node.arg(folder().join("docker/orders.mjs")).env("PORT", "0").stdout(Stdio::piped());
    let mut service = Service(started(&mut node));
    let mut line = String::new();
    BufReader::new(service.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let port = line.trim().strip_prefix("orders on port ").unwrap();
    let upstream = format!("http://127.0.0.1:{port}");
    let fixture = Fixture::bare();
    let sidecar = Sidecar::start(&fixture, &["--upstream", &upstream, "--store", "memory:"]);
    for _ in 0..2 {
        let answer = ask(sidecar.address(), &format!("POST /orders\nIdempotency-Key: {KEY}"), "{}");
        assert_eq!((answer.status(), answer.body.as_str()), (201, "{\"orders\":1}"));
    }
}

#[test]
fn all_files_in_the_compose_files_exist() {
    for compose in COMPOSE.map(text) {
        for (part, file) in [
            ("context: ../..", "../../Cargo.toml"),
            ("dockerfile: packaging/docker/Dockerfile", "Dockerfile"),
            ("./orders.mjs:/app/orders.mjs:ro", "orders.mjs"),
        ] {
            assert!(compose.contains(part), "{part}");
            assert!(folder().join("docker").join(file).exists(), "{file}");
        }
    }
}

/// The arguments of `program` in a compose file.
fn arguments(file: &str, program: &str) -> Vec<String> {
    let (text, begin) = (text(file), format!("command: [\"{program}\", "));
    let line = text.lines().find_map(|line| line.trim().strip_prefix(&begin)).unwrap();
    line.trim_end_matches(']').split(", ").map(|word| word.trim_matches('"').to_owned()).collect()
}

/// Starts a sidecar on the store and checks its promise.
fn has_the_strongest_promise(store: &str) {
    let fixture = Fixture::bare();
    let sidecar = Sidecar::start(&fixture, &["--demo", "--store", store]);
    let checked = hapax(fixture.path(), &["check", "--store", store, "--json"]).ended(0).json();
    assert_eq!(checked["promise"], "at most once; a crash leaves the key uncertain for you to settle");
    let warnings = checked["warnings"].as_array().unwrap();
    assert!(!warnings.iter().any(|warning| !warning.as_str().unwrap().starts_with("/**: ")), "{warnings:?}");
    drop(sidecar);
}

#[test]
fn the_redis_of_the_compose_file_has_the_strongest_promise() {
    let options = arguments("docker/compose.redis.yaml", "redis-server")
        .chunks_exact(2)
        .fold(RedisServer::options(), |options, pair| options.argument(&pair[0], &pair[1]));
    let server = alone(|| options.start());
    has_the_strongest_promise(&format!("{}/0", server.url()));
}

#[test]
fn the_database_of_the_compose_file_has_the_strongest_promise() {
    // The defaults of this test server are not durable, so the settings of the file must be.
    let arguments = arguments("docker/compose.postgres.yaml", "postgres");
    let settings = arguments.iter().filter(|word| *word != "-c").map(|word| word.split_once('=').unwrap());
    let options =
        settings.fold(PostgresServer::options(), |options, (name, value)| options.setting(name, value));
    let server = alone(|| options.start());
    let compose = text("docker/compose.postgres.yaml");
    let store = compose.lines().find_map(|line| line.trim().strip_prefix("HAPAX_STORE_URL: ")).unwrap();
    let (_, options) = store.split_once("@database/orders").unwrap();
    has_the_strongest_promise(&format!("{}{options}", server.url()));
}

/// A process that is killed on drop.
struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
