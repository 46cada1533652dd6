//! The third-party servers, and how each is started.

use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{ADDRESSES, Ports};
use crate::tools::{installed_as_in_guide, needs};

/// The path of nginx on Debian, which is not in the `PATH` of all users.
pub(crate) const NGINX: &str = "/usr/sbin/nginx";

/// A third-party server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Program {
    Nginx,
    Express,
    FastApi,
}

impl Program {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Express => "express",
            Self::FastApi => "fastapi",
        }
    }

    /// The name of the suite's surface.
    pub(crate) fn surface(self) -> &'static str {
        match self {
            Self::Nginx => "sidecar-nginx",
            Self::Express => "sidecar-express",
            Self::FastApi => "sidecar-fastapi",
        }
    }

    /// One of its addresses. The servers share none, so that they can run concurrently.
    pub(super) fn address(self, number: u8) -> Ipv4Addr {
        let network = match self {
            Self::Nginx => 81,
            Self::Express => 82,
            Self::FastApi => 83,
        };
        Ipv4Addr::new(127, network, 0, number)
    }

    /// The command that starts it, in an empty `folder`.
    pub(super) fn command(self, folder: &Path, ports: Ports) -> Command {
        let mut command = match self {
            Self::Nginx => self.nginx(folder, ports),
            Self::Express => {
                needs("npm", "nodejs npm");
                let installed = installed_as_in_guide("express");
                // Node resolves modules relative to the program.
                fs::write(installed.join("origin.mjs"), include_str!("express_origin.mjs")).unwrap();
                let mut node = Command::new("node");
                // Otherwise Express prints the errors that scripts provoke.
                node.arg(installed.join("origin.mjs")).env("NODE_ENV", "test");
                self.with_arguments(node, ports)
            }
            Self::FastApi => {
                needs("python3", "python3 python3-venv");
                let installed = installed_as_in_guide("fastapi");
                let script = folder.join("origin.py");
                fs::write(&script, include_str!("fastapi_origin.py")).unwrap();
                let mut python = Command::new(installed.join(".venv/bin/python"));
                python.arg(script);
                self.with_arguments(python, ports)
            }
        };
        // A process group of its own, to be ended as a whole.
        command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
        command
    }

    /// Adds ports and addresses as arguments.
    fn with_arguments(self, mut command: Command, ports: Ports) -> Command {
        command.args([ports.server, ports.origin].map(|port| port.to_string()));
        command.args((0..ADDRESSES).map(|number| self.address(number).to_string()));
        command
    }

    fn nginx(self, folder: &Path, ports: Ports) -> Command {
        let is_there = Path::new(NGINX).is_file();
        assert!(is_there, "{NGINX} is missing: apt-get install -y nginx-light");
        let mut listen = format!("set $origin_port {};\n", ports.origin);
        for number in 0..ADDRESSES {
            writeln!(listen, "listen {}:{};", self.address(number), ports.server).unwrap();
        }
        fs::write(folder.join("listen.conf"), listen).unwrap();
        fs::write(folder.join("nginx.conf"), include_str!("nginx.conf")).unwrap();
        // If nginx runs as root, its workers run as another user, who stores large bodies here.
        fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
        let mut nginx = Command::new(NGINX);
        nginx.arg("-p").arg(folder).arg("-c").arg(folder.join("nginx.conf")).args(["-e", "stderr"]);
        nginx
    }
}
