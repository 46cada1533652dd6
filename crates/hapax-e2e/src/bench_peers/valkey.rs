//! [`Valkey`]: the Redis server of all peers.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};
use tempfile::TempDir;

use super::server::{free_address, until_listening};
use crate::rig::child::ChildProcess;

/// A running server without persistence. Dropping it kills it.
pub(super) struct Valkey {
    pub(super) process: ChildProcess,
    _folder: TempDir,
    pub(super) address: SocketAddr,
}

impl Valkey {
    pub(super) fn start(program: &Path) -> Result<Self> {
        let (folder, address) = (tempfile::tempdir()?, free_address()?);
        let mut command = Command::new(program);
        command.args(["--save", "", "--bind", "127.0.0.1", "--port", &address.port().to_string()]);
        command.arg("--dir").arg(folder.path()).stdout(Stdio::null());
        let mut process = ChildProcess::spawn(&mut command)?;
        until_listening(address, &mut process)?;
        Ok(Self { process, _folder: folder, address })
    }

    /// Removes all keys.
    pub(super) fn flush(&self) -> Result<()> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.write_all(b"FLUSHALL\r\n")?;
        let mut answer = [0; 5];
        stream.read_exact(&mut answer)?;
        ensure!(&answer == b"+OK\r\n", "the Redis server was not flushed");
        Ok(())
    }
}
