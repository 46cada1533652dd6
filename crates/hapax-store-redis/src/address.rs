//! Where the server is: at one address, or wherever Sentinel says that the primary is now.
//!
//! It is asked for anew with every connection. Whether what is found there really is a primary is looked at by whoever
//! connects.

use std::time::Duration;

use hapax_core::StoreError;
use redis::{Client, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo, RedisError};
use tokio::time::timeout;

use crate::config::Options;

/// The way to find the server.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    /// The server, or how to talk to the one that is found.
    client: Client,
    sentinels: Option<Sentinels>,
}

/// Those who know where the primary is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Sentinels {
    /// What they call it.
    pub(crate) name: String,
    /// Host and port of each.
    pub(crate) hosts: Vec<(String, u16)>,
}

impl Address {
    pub(crate) fn new(options: &Options) -> Result<Self, StoreError> {
        Ok(Self { client: options.client()?, sentinels: options.sentinels.clone() })
    }

    /// Whether the server may become another one.
    pub(crate) fn may_fail_over(&self) -> bool {
        self.sentinels.is_some()
    }

    /// The server as it is to be reached now, within `limit`.
    pub(crate) async fn client(&self, limit: Duration) -> Result<Client, RedisError> {
        let Some(sentinels) = &self.sentinels else { return Ok(self.client.clone()) };
        // One that hangs must leave time for the others, and for the server itself.
        let each = limit / u32::try_from(sentinels.hosts.len() + 1).unwrap_or(u32::MAX);
        let mut last = RedisError::from((ErrorKind::EmptySentinelList, "no sentinel answered in time"));
        for host in &sentinels.hosts {
            match timeout(each, self.ask(host, &sentinels.name)).await {
                Ok(Ok(primary)) => return Client::open(self.reached_at(&primary)),
                Ok(Err(error)) => last = error,
                Err(_elapsed) => {}
            }
        }
        Err(last)
    }

    async fn ask(&self, sentinel: &(String, u16), name: &str) -> Result<(String, u16), RedisError> {
        let info = self.info().clone();
        // A sentinel has no databases, and is asked without the password of the server.
        let info = info.addr().clone().into_connection_info()?.set_addr(moved(info.addr(), sentinel));
        let mut connection = Client::open(info)?.get_multiplexed_async_connection().await?;
        let mut asked = redis::cmd("SENTINEL");
        asked.arg("GET-MASTER-ADDR-BY-NAME").arg(name);
        let found: Option<(String, u16)> = asked.query_async(&mut connection).await?;
        found.ok_or_else(|| (ErrorKind::MasterNameNotFoundBySentinel, "no such name is watched").into())
    }

    fn reached_at(&self, primary: &(String, u16)) -> ConnectionInfo {
        let info = self.info().clone();
        let address = moved(info.addr(), primary);
        info.set_addr(address)
    }

    fn info(&self) -> &ConnectionInfo {
        self.client.get_connection_info()
    }
}

/// The same kind of address elsewhere.
fn moved(address: &ConnectionAddr, (host, port): &(String, u16)) -> ConnectionAddr {
    match address.clone() {
        ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
            ConnectionAddr::TcpTls { host: host.clone(), port: *port, insecure, tls_params }
        }
        _ => ConnectionAddr::Tcp(host.clone(), *port),
    }
}

/// Reads `host:port,host:port/name[/database]` of a URL. What is returned first is the rest as the URL of one server.
pub(crate) fn parse(scheme: &str, rest: &str) -> Result<(String, Sentinels), String> {
    let rest = rest.strip_prefix("//").ok_or("it names no sentinel")?;
    let (place, query) =
        rest.split_once('?').map_or((rest, String::new()), |(place, query)| (place, format!("?{query}")));
    let (authority, path) =
        place.split_once('/').ok_or("it does not say what the sentinels call the server")?;
    let (user, hosts) = authority.rsplit_once('@').map_or(("", authority), |(user, hosts)| (user, hosts));
    let (name, database) = path.split_once('/').unwrap_or((path, "0"));
    if name.is_empty() {
        return Err("it does not say what the sentinels call the server".to_owned());
    }
    let hosts: Option<Vec<(String, u16)>> = hosts.split(',').map(host).collect();
    let hosts = hosts.ok_or("a sentinel is written as host or host:port")?;
    let at = if user.is_empty() { String::new() } else { format!("{user}@") };
    let (first, port) = &hosts[0];
    let url = format!("{scheme}://{at}{first}:{port}/{database}{query}");
    Ok((url, Sentinels { name: name.to_owned(), hosts }))
}

/// Where sentinels listen unless told otherwise.
const PORT: u16 = 26379;

fn host(text: &str) -> Option<(String, u16)> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (text, PORT),
    };
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

#[cfg(test)]
mod tests;
