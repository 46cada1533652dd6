//! Server discovery: one fixed address, or the current primary according to Sentinel. Also parses URLs that name several
//! hosts.
//!
//! The primary is located again for every connection and periodically: a replaced primary may not know it yet and would
//! take writes that are lost. The caller that connects verifies that the server found is a primary.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use hapax_core::StoreError;
use redis::{Client, ConnectionAddr, ConnectionInfo, ErrorKind, RedisConnectionInfo, RedisError};
use tokio::time::{Instant, timeout_at};

use crate::config::Options;

/// Host name and port.
pub(crate) type Host = (String, u16);

/// How long to wait for the remaining sentinels once a majority has answered. One of them often ran beside the last primary.
const REST_MAX: Duration = Duration::from_millis(100);

/// Where a server was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Located {
    pub(crate) host: Host,
    /// The configuration epoch of the failover that promoted it. Zero without Sentinel.
    pub(crate) epoch: u64,
}

/// How servers are discovered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Discovery {
    /// One server at a fixed address.
    Fixed,
    /// The primary known to these sentinels.
    Sentinel(Sentinels),
    /// A cluster; these are its seed nodes.
    Cluster(Vec<Host>),
}

/// Locates the server.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    /// The fixed server, or the connection settings for the one that is located.
    client: Client,
    sentinels: Option<Sentinels>,
    sentinel_login: RedisConnectionInfo,
}

/// The sentinels that know the primary.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Sentinels {
    /// The name under which they monitor it.
    pub(crate) name: String,
    /// Host and port of each.
    pub(crate) hosts: Vec<Host>,
}

impl Address {
    pub(crate) fn new(options: &Options) -> Result<Self, StoreError> {
        let sentinels = match &options.discovery {
            Discovery::Sentinel(sentinels) => Some(sentinels.clone()),
            Discovery::Fixed | Discovery::Cluster(_) => None,
        };
        // A sentinel has no databases and is never sent the server's password.
        let mut sentinel_login = RedisConnectionInfo::default();
        if let Some((user, password)) = &options.sentinel_login {
            sentinel_login = sentinel_login.set_password(password);
            if let Some(user) = user {
                sentinel_login = sentinel_login.set_username(user);
            }
        }
        Ok(Self { client: options.client()?, sentinels, sentinel_login })
    }

    /// Another server with the same connection settings.
    pub(crate) fn at(&self, host: &Host) -> Result<Self, RedisError> {
        Ok(Self {
            client: self.client(host)?,
            sentinels: None,
            sentinel_login: RedisConnectionInfo::default(),
        })
    }

    /// The server's address; meaningless with Sentinel.
    pub(crate) fn host(&self) -> Host {
        match self.info().addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                (host.clone(), *port)
            }
            // No URL yields another kind.
            _ => (String::new(), 0),
        }
    }

    /// Whether another server may become the primary.
    pub(crate) fn may_fail_over(&self) -> bool {
        self.sentinels.is_some()
    }

    /// Locates the server; takes half of `limit` at most. When sentinels disagree, the highest configuration epoch wins.
    pub(crate) async fn locate(&self, limit: Duration) -> Result<Located, RedisError> {
        let Some(Sentinels { name, hosts }) = &self.sentinels else {
            return Ok(Located { host: self.host(), epoch: 0 });
        };
        let mut queries: FuturesUnordered<_> =
            hosts.iter().map(|host| self.query_sentinel(host, name)).collect();
        let mut until = Instant::now() + limit / 2;
        let mut latest: Option<Located> = None;
        let mut last = RedisError::from((ErrorKind::EmptySentinelList, "no sentinel answered in time"));
        let mut answers = 0;
        while let Ok(Some(answer)) = timeout_at(until, queries.next()).await {
            match answer {
                Ok(found) => {
                    answers += 1;
                    if latest.as_ref().is_none_or(|latest| found.epoch > latest.epoch) {
                        latest = Some(found);
                    }
                }
                Err(error) => last = error,
            }
            if answers > hosts.len() / 2 {
                until = until.min(Instant::now() + REST_MAX);
            }
        }
        latest.ok_or(last)
    }

    /// A client for another host with the same connection settings.
    pub(crate) fn client(&self, host: &Host) -> Result<Client, RedisError> {
        Client::open(self.info_for(host))
    }

    /// Queries one sentinel for the primary.
    async fn query_sentinel(&self, sentinel: &Host, name: &str) -> Result<Located, RedisError> {
        let info = self.info_for(sentinel).set_redis_settings(self.sentinel_login.clone());
        let mut connection = Client::open(info)?.get_multiplexed_async_connection().await?;
        // The epoch first: with a failover in between, the host is newer than its epoch, never older.
        let mut command = redis::cmd("SENTINEL");
        command.arg("MASTER").arg(name);
        let about: HashMap<String, String> = match command.query_async(&mut connection).await {
            Ok(about) => about,
            // A user without permission for this command gets no epoch.
            Err(error) if error.code().is_some() => HashMap::new(),
            Err(error) => return Err(error),
        };
        let epoch = about.get("config-epoch").and_then(|epoch| epoch.parse().ok()).unwrap_or_default();
        let mut command = redis::cmd("SENTINEL");
        command.arg("GET-MASTER-ADDR-BY-NAME").arg(name);
        let host: Option<Host> = command.query_async(&mut connection).await?;
        let unknown = (ErrorKind::MasterNameNotFoundBySentinel, "no such name is watched");
        Ok(Located { host: host.ok_or(unknown)?, epoch })
    }

    fn info_for(&self, primary: &Host) -> ConnectionInfo {
        let info = self.info().clone();
        let address = with_host(info.addr(), primary);
        info.set_addr(address)
    }

    fn info(&self) -> &ConnectionInfo {
        self.client.get_connection_info()
    }
}

/// The same kind of address for another host.
fn with_host(address: &ConnectionAddr, (host, port): &Host) -> ConnectionAddr {
    match address.clone() {
        ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
            ConnectionAddr::TcpTls { host: host.clone(), port: *port, insecure, tls_params }
        }
        _ => ConnectionAddr::Tcp(host.clone(), *port),
    }
}

/// Parses `host:port,host:port/name[/database]` of a URL. Returns first the rest as the URL of one server.
pub(crate) fn parse_sentinels(scheme: &str, rest: &str) -> Result<(String, Sentinels), String> {
    let list = HostList::parse(rest, SENTINEL_PORT).ok_or("a sentinel is written as host or host:port")?;
    let (name, database) = list.path.split_once('/').unwrap_or((list.path, "0"));
    if name.is_empty() {
        return Err("it does not say under which name the sentinels monitor the server".to_owned());
    }
    let url = list.first(scheme, database);
    Ok((url, Sentinels { name: name.to_owned(), hosts: list.hosts }))
}

/// Parses `host:port,host:port[/0]` of a URL. Returns first the URL of the first member alone.
pub(crate) fn parse_cluster(scheme: &str, rest: &str) -> Result<(String, Vec<Host>), String> {
    let list = HostList::parse(rest, PORT).ok_or("a member is written as host or host:port")?;
    if !matches!(list.path, "" | "0") {
        return Err("a cluster has only database 0".to_owned());
    }
    Ok((list.first(scheme, "0"), list.hosts))
}

/// The default port of a server.
const PORT: u16 = 6379;

/// The default port of a sentinel.
const SENTINEL_PORT: u16 = 26379;

/// The part after the scheme of a URL that names several hosts.
struct HostList<'a> {
    /// User and password with the at sign, if present.
    user: &'a str,
    hosts: Vec<Host>,
    path: &'a str,
    /// Includes the question mark.
    query: &'a str,
}

impl<'a> HostList<'a> {
    fn parse(rest: &'a str, port: u16) -> Option<Self> {
        let rest = rest.strip_prefix("//")?;
        let (location, query) = rest.split_at(rest.find('?').unwrap_or(rest.len()));
        let (authority, path) = location.split_once('/').unwrap_or((location, ""));
        let (user, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
        let hosts: Option<Vec<Host>> = hosts.split(',').map(|text| host(text, port)).collect();
        Some(Self { user, hosts: hosts?, path, query })
    }

    /// The URL with only the first host.
    fn first(&self, scheme: &str, database: &str) -> String {
        let (host, port) = &self.hosts[0];
        format!("{scheme}://{}{host}:{port}/{database}{}", self.user, self.query)
    }
}

fn host(text: &str, port: u16) -> Option<Host> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (text, port),
    };
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

/// Formats hosts as in a URL.
pub(crate) fn format_hosts(hosts: &[Host]) -> String {
    let hosts: Vec<String> = hosts.iter().map(|(host, port)| format!("{host}:{port}")).collect();
    hosts.join(",")
}

#[cfg(test)]
mod tests;
