//! [`Chain`]: the three services as processes, which are killed and started again.
#![allow(clippy::print_stdout, reason = "the parent reads the address")]

use std::env;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use tokio::net::TcpListener;

use super::BoxError;
use super::hold::{HELD, Hold, Point};
use super::services::{self, Entries};

/// The services, the last one first: each is told where the next is.
pub(crate) const SERVICES: [&str; 3] = ["ledger", "payments", "shop"];
/// A port of the system's choice.
const ANY_PORT: &str = "127.0.0.1:0";
/// The variables that make a process a service.
const SERVICE: &str = "CHAIN_SERVICE";
const LISTEN: &str = "CHAIN_LISTEN";
const FOLDER: &str = "CHAIN_FOLDER";
const NEXT: &str = "CHAIN_NEXT";
const HOLD: &str = "CHAIN_HOLD";
/// The start of the lines that the parent reads.
const MARK: &str = "chain: ";

/// The running services. Dropping it kills them.
pub(crate) struct Chain {
    folder: PathBuf,
    /// Runs [`serve`] with the arguments that are added.
    program: fn() -> Result<Command, BoxError>,
    services: Vec<Service>,
}

struct Service {
    process: Child,
    lines: BufReader<ChildStdout>,
    address: SocketAddr,
}

impl Chain {
    pub(crate) fn start(folder: &Path, program: fn() -> Result<Command, BoxError>) -> Result<Self, BoxError> {
        let mut chain = Self { folder: folder.to_owned(), program, services: Vec::new() };
        for number in 0..SERVICES.len() {
            let service = chain.spawn(number, ANY_PORT, None)?;
            chain.services.push(service);
        }
        Ok(chain)
    }

    /// Where orders are sent.
    pub(crate) fn shop(&self) -> String {
        format!("http://{}/", self.services[SERVICES.len() - 1].address)
    }

    /// The entries of the ledger about an order.
    pub(crate) fn entries_of(&self, order: &str) -> Result<usize, BoxError> {
        let entries = Entries(self.folder.join("ledger").join("entries")).all()?;
        Ok(entries.iter().filter(|(_, entry)| entry == order).count())
    }

    /// Kills a service with SIGKILL and starts it on the same records and port; handlers stop at the point.
    pub(crate) fn restart(&mut self, number: usize, point: Option<Point>) -> Result<(), BoxError> {
        let service = &mut self.services[number];
        service.process.kill()?;
        service.process.wait()?;
        let address = service.address.to_string();
        self.services[number] = self.spawn(number, &address, point)?;
        Ok(())
    }

    /// Waits until a handler of the service has stopped. Blocks.
    pub(crate) fn until_held(&mut self, number: usize) -> Result<(), BoxError> {
        match line(&mut self.services[number].lines)?.as_str() {
            HELD => Ok(()),
            other => Err(format!("{} printed {other:?}", SERVICES[number]).into()),
        }
    }

    fn spawn(&self, number: usize, address: &str, point: Option<Point>) -> Result<Service, BoxError> {
        let name = SERVICES[number];
        let mut command = (self.program)()?;
        command.env(SERVICE, name).env(LISTEN, address).env(FOLDER, self.folder.join(name));
        if let Some(next) = number.checked_sub(1) {
            command.env(NEXT, format!("http://{}/", self.services[next].address));
        }
        if let Some(point) = point {
            command.env(HOLD, format!("{point:?}"));
        }
        let mut process = command.stdout(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(process.stdout.take().ok_or("the output is a pipe")?);
        let address = line(&mut lines)?.parse()?;
        Ok(Service { process, lines, address })
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        for service in &mut self.services {
            let _ = service.process.kill();
            let _ = service.process.wait();
        }
    }
}

/// The next line for the parent.
fn line(lines: &mut BufReader<ChildStdout>) -> Result<String, BoxError> {
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line)? == 0 {
            return Err("the service has ended".into());
        }
        if let Some((_, line)) = line.trim_end().split_once(MARK) {
            return Ok(line.to_owned());
        }
    }
}

/// Prints a line for the parent.
pub(crate) fn tell(line: &str) {
    println!("{MARK}{line}");
}

/// Whether this process is a service.
pub(crate) fn is_service() -> bool {
    env::var_os(SERVICE).is_some()
}

/// Serves until the process is killed.
pub(crate) async fn serve() -> Result<(), BoxError> {
    let folder = PathBuf::from(env::var(FOLDER)?);
    std::fs::create_dir_all(&folder)?;
    let hold = Hold(match env::var(HOLD).as_deref() {
        Ok("BeforeEffect") => Some(Point::BeforeEffect),
        Ok("AfterEffect") => Some(Point::AfterEffect),
        _ => None,
    });
    let app = match env::var(SERVICE)?.as_str() {
        "shop" => services::shop(&folder, env::var(NEXT)?, hold)?,
        "payments" => services::payments(&folder, env::var(NEXT)?, hold)?,
        _ => services::ledger(&folder, hold)?,
    };
    let listener = TcpListener::bind(env::var(LISTEN)?).await?;
    tell(&listener.local_addr()?.to_string());
    Ok(axum::serve(listener, app).await?)
}
