//! What every server needs to start: a port, a user who may run it, and a way to know that it is ready.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::geteuid;

/// A server that is not ready by then never will be. One that recovers syncs all its files first, which takes a minute
/// where others keep the disk busy.
const READY_WITHIN: Duration = Duration::from_secs(300);

/// Between asking for a free port and using it, somebody else may have taken it.
pub(super) const PORT_TRIES: usize = 5;

/// How much of what a server says is kept to be told when it does not start.
const SAID_MAX: usize = 4096;

/// A port on loopback that nobody listens on.
pub(super) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    listener.local_addr().expect("a listener has an address").port()
}

/// Reads the log of the server `name` until it says one of `ready`, and goes on reading so that it is never held up.
///
/// # Errors
/// What it said instead.
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

/// Somebody who is not root, for servers that refuse to run as root.
#[derive(Clone, Copy, Debug)]
pub(super) struct User {
    uid: u32,
    gid: u32,
}

impl User {
    /// None when this process is not root: then it may run any server itself.
    ///
    /// # Panics
    /// When there is nobody.
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

    /// Gives a directory or a file to this user.
    pub(super) fn own(self, path: &Path) {
        std::os::unix::fs::chown(path, Some(self.uid), Some(self.gid)).expect("root may give files away");
    }
}

/// A command that runs as `user`. The process that it starts is the program itself.
pub(super) fn command_as(user: Option<User>, program: &Path) -> Command {
    let Some(User { uid, gid }) = user else { return Command::new(program) };
    let mut command = Command::new("setpriv");
    command.arg(format!("--reuid={uid}")).arg(format!("--regid={gid}")).args(["--clear-groups", "--"]);
    command.arg(program);
    command
}

/// A program of Debian's PostgreSQL, which is not in everybody's path: the newest there is, else its name alone.
pub(super) fn postgres_program(name: &str) -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let version = |folder: &std::fs::DirEntry| folder.file_name().to_str()?.parse::<u32>().ok();
    let newest = folders.filter_map(|folder| Some((version(&folder)?, folder.path()))).max();
    match newest.map(|(_, folder)| folder.join("bin").join(name)) {
        Some(program) if program.is_file() => program,
        _ => PathBuf::from(name),
    }
}

/// What brings servers that are in nobody's package.
pub(super) const INSTALL: &str = "cargo xtask test tools";

/// What was put there, below the folder that cargo builds in.
pub(super) fn beside_built(path: &str) -> Option<PathBuf> {
    let own = std::env::current_exe().expect("a program knows its own file");
    // A program is in TARGET/PROFILE, and a test a folder below.
    own.ancestors().skip(2).take(2).map(|target| target.join(path)).find(|found| found.exists())
}
