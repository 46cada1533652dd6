//! What every server needs to start: a free port, an unprivileged user, and its log line when it is ready.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::geteuid;

/// Longer than any start takes. A recovering server syncs all its files first, which takes a minute on a busy disk.
const READY_WITHIN: Duration = Duration::from_secs(300);

/// Starts that are tried: another process may take the free port before the server does.
pub(super) const PORT_TRIES: usize = 5;

/// Log lines that are kept for the message when a server does not start.
const SAID_MAX: usize = 4096;

/// A free port on loopback.
pub(super) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    listener.local_addr().expect("a listener has an address").port()
}

/// Reads the log of the server `name` until a line contains one of `ready`, and goes on reading so that the pipe
/// never fills up.
///
/// # Errors
/// The log lines instead.
pub(super) fn wait_until_ready(
    name: &str,
    log: impl Read + Send + 'static,
    ready: &'static [&'static str],
) -> Result<(), String> {
    let (tell, is_ready) = mpsc::channel();
    std::thread::spawn(move || {
        let mut said = String::new();
        for line in BufReader::new(log).lines().map_while(Result::ok) {
            if ready.iter().any(|words| line.contains(words)) {
                let _ = tell.send(Ok(()));
            }
            if said.len() < SAID_MAX {
                said.push_str(&line);
                said.push('\n');
            }
        }
        let _ = tell.send(Err(said));
    });
    is_ready.recv_timeout(READY_WITHIN).unwrap_or_else(|_| Err(format!("{name} does not become ready")))
}

/// A user other than root, for servers that refuse to run as root.
#[derive(Clone, Copy, Debug)]
pub(super) struct User {
    uid: u32,
    gid: u32,
}

impl User {
    /// None when this process is not root: then it may run any server itself.
    ///
    /// # Panics
    /// When there is no such user.
    pub(super) fn unprivileged() -> Option<Self> {
        if !geteuid().is_root() {
            return None;
        }
        let id = |flag: &str, name: &str| -> Option<u32> {
            let told = Command::new("id").args([flag, name]).output().ok()?;
            String::from_utf8(told.stdout).ok()?.trim().parse().ok()
        };
        let find = |name| Some(Self { uid: id("-u", name)?, gid: id("-g", name)? });
        let user = ["postgres", "nobody"].into_iter().find_map(find);
        Some(user.expect("a machine has a user called nobody"))
    }

    /// Makes this user the owner of a directory or file.
    pub(super) fn own(self, path: &Path) {
        std::os::unix::fs::chown(path, Some(self.uid), Some(self.gid)).expect("root may give files away");
    }
}

/// A command that runs as `user`. Its process is the program itself.
pub(super) fn command_as(user: Option<User>, program: &Path) -> Command {
    let Some(User { uid, gid }) = user else { return Command::new(program) };
    let mut command = Command::new("setpriv");
    command.arg(format!("--reuid={uid}")).arg(format!("--regid={gid}")).args(["--clear-groups", "--"]);
    command.arg(program);
    command
}

/// A program of Debian's PostgreSQL, which is not in every `PATH`: the newest version, or its bare name.
pub(super) fn postgres_program(name: &str) -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let version = |folder: &std::fs::DirEntry| folder.file_name().to_str()?.parse::<u32>().ok();
    let newest = folders.filter_map(|folder| Some((version(&folder)?, folder.path()))).max();
    match newest.map(|(_, folder)| folder.join("bin").join(name)) {
        Some(program) if program.is_file() => program,
        _ => PathBuf::from(name),
    }
}

/// The command that installs servers without a Debian package.
pub(super) const INSTALL: &str = "cargo xtask test tools";

/// What it installed, below the target directory of cargo.
pub(super) fn beside_built(path: &str) -> Option<PathBuf> {
    let own = std::env::current_exe().expect("the path of the program is known");
    // A program is in TARGET/PROFILE, and a test one folder below.
    own.ancestors().skip(2).take(2).map(|target| target.join(path)).find(|found| found.exists())
}
