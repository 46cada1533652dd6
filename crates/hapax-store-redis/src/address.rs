//! Where a server is: at one address, or wherever Sentinel says that the primary is now. Also how URLs name several.
//!
//! It is asked for anew with every connection, and from time to time: a primary that another one has replaced may not know
//! it yet, and would take writes that are lost. Whether what is found there really is a primary is looked at by whoever
//! connects.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use hapax_core::StoreError;
use redis::{Client, ConnectionAddr, ConnectionInfo, ErrorKind, RedisConnectionInfo, RedisError};
use tokio::time::{Instant, timeout_at};

use crate::config::Options;

/// Name and port of a machine.
pub(crate) type Host = (String, u16);

/// How long the rest is waited for when most sentinels have answered. One of them is often where the last primary was.
const REST_MAX: Duration = Duration::from_millis(100);

/// Where a server was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Located {
    pub(crate) place: Host,
    /// The number of the failover that brought it there. Zero where nobody counts them.
    pub(crate) epoch: u64,
}

/// Which servers there are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// The one that is named.
    One,
    /// The one that these know.
    Sentinels(Sentinels),
    /// A cluster with these members, and others.
    Cluster(Vec<Host>),
}

/// The way to find the server.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    /// The server, or how to talk to the one that is found.
    client: Client,
    sentinels: Option<Sentinels>,
    sentinel_login: RedisConnectionInfo,
}

/// Those who know where the primary is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Sentinels {
    /// What they call it.
    pub(crate) name: String,
    /// Host and port of each.
    pub(crate) hosts: Vec<Host>,
}

impl Address {
    pub(crate) fn new(options: &Options) -> Result<Self, StoreError> {
        let sentinels = match &options.place {
            Place::Sentinels(sentinels) => Some(sentinels.clone()),
            Place::One | Place::Cluster(_) => None,
        };
        // A sentinel has no databases, and is never told the password of the server.
        let mut sentinel_login = RedisConnectionInfo::default();
        if let Some((user, password)) = &options.sentinel_login {
            sentinel_login = sentinel_login.set_password(password);
            if let Some(user) = user {
                sentinel_login = sentinel_login.set_username(user);
            }
        }
        Ok(Self { client: options.client()?, sentinels, sentinel_login })
    }

    /// Another server that is talked to in the same way.
    pub(crate) fn at(&self, host: &Host) -> Result<Self, RedisError> {
        Ok(Self {
            client: self.client(host)?,
            sentinels: None,
            sentinel_login: RedisConnectionInfo::default(),
        })
    }

    /// Where the server is, unless sentinels know it.
    pub(crate) fn host(&self) -> Host {
        match self.info().addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                (host.clone(), *port)
            }
            // There is no such URL.
            _ => (String::new(), 0),
        }
    }

    /// Whether the server may become another one.
    pub(crate) fn may_fail_over(&self) -> bool {
        self.sentinels.is_some()
    }

    /// Where the server is now, asked for half of `limit` at most. Of sentinels that disagree the one is believed that
    /// knows of the latest failover.
    pub(crate) async fn locate(&self, limit: Duration) -> Result<Located, RedisError> {
        let Some(Sentinels { name, hosts }) = &self.sentinels else {
            return Ok(Located { place: self.host(), epoch: 0 });
        };
        let mut asked: FuturesUnordered<_> = hosts.iter().map(|host| self.ask(host, name)).collect();
        let mut until = Instant::now() + limit / 2;
        let mut latest: Option<Located> = None;
        let mut last = RedisError::from((ErrorKind::EmptySentinelList, "no sentinel answered in time"));
        let mut answers = 0;
        while let Ok(Some(answer)) = timeout_at(until, asked.next()).await {
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

    /// The server at another place, talked to in the same way.
    pub(crate) fn client(&self, place: &Host) -> Result<Client, RedisError> {
        Client::open(self.reached_at(place))
    }

    /// Where a sentinel says that the primary is.
    async fn ask(&self, sentinel: &Host, name: &str) -> Result<Located, RedisError> {
        let info = self.reached_at(sentinel).set_redis_settings(self.sentinel_login.clone());
        let mut connection = Client::open(info)?.get_multiplexed_async_connection().await?;
        // The number first: with a failover in between the place is newer than its number, and never older.
        let mut asked = redis::cmd("SENTINEL");
        asked.arg("MASTER").arg(name);
        let about: HashMap<String, String> = match asked.query_async(&mut connection).await {
            Ok(about) => about,
            // One that may not tell counts nothing.
            Err(error) if error.code().is_some() => HashMap::new(),
            Err(error) => return Err(error),
        };
        let epoch = about.get("config-epoch").and_then(|epoch| epoch.parse().ok()).unwrap_or_default();
        let mut asked = redis::cmd("SENTINEL");
        asked.arg("GET-MASTER-ADDR-BY-NAME").arg(name);
        let place: Option<Host> = asked.query_async(&mut connection).await?;
        let unknown = (ErrorKind::MasterNameNotFoundBySentinel, "no such name is watched");
        Ok(Located { place: place.ok_or(unknown)?, epoch })
    }

    fn reached_at(&self, primary: &Host) -> ConnectionInfo {
        let info = self.info().clone();
        let address = moved(info.addr(), primary);
        info.set_addr(address)
    }

    fn info(&self) -> &ConnectionInfo {
        self.client.get_connection_info()
    }
}

/// The same kind of address elsewhere.
fn moved(address: &ConnectionAddr, (host, port): &Host) -> ConnectionAddr {
    match address.clone() {
        ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
            ConnectionAddr::TcpTls { host: host.clone(), port: *port, insecure, tls_params }
        }
        _ => ConnectionAddr::Tcp(host.clone(), *port),
    }
}

/// Reads `host:port,host:port/name[/database]` of a URL. What is returned first is the rest as the URL of one server.
pub(crate) fn parse_sentinels(scheme: &str, rest: &str) -> Result<(String, Sentinels), String> {
    let several = Several::parse(rest, SENTINEL_PORT).ok_or("a sentinel is written as host or host:port")?;
    let (name, database) = several.path.split_once('/').unwrap_or((several.path, "0"));
    if name.is_empty() {
        return Err("it does not say what the sentinels call the server".to_owned());
    }
    let url = several.first(scheme, database);
    Ok((url, Sentinels { name: name.to_owned(), hosts: several.hosts }))
}

/// Reads `host:port,host:port[/0]` of a URL. What is returned first is the first member as the URL of one server.
pub(crate) fn parse_cluster(scheme: &str, rest: &str) -> Result<(String, Vec<Host>), String> {
    let several = Several::parse(rest, PORT).ok_or("a member is written as host or host:port")?;
    if !matches!(several.path, "" | "0") {
        return Err("a cluster has the database 0 and no other".to_owned());
    }
    Ok((several.first(scheme, "0"), several.hosts))
}

/// Where servers listen unless told otherwise.
const PORT: u16 = 6379;

/// Where sentinels listen unless told otherwise.
const SENTINEL_PORT: u16 = 26379;

/// What follows the scheme of a URL that names several machines.
struct Several<'a> {
    /// User and password with the at sign, where there are any.
    user: &'a str,
    hosts: Vec<Host>,
    path: &'a str,
    /// With its question mark.
    query: &'a str,
}

impl<'a> Several<'a> {
    fn parse(rest: &'a str, port: u16) -> Option<Self> {
        let rest = rest.strip_prefix("//")?;
        let (place, query) = rest.split_at(rest.find('?').unwrap_or(rest.len()));
        let (authority, path) = place.split_once('/').unwrap_or((place, ""));
        let (user, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
        let hosts: Option<Vec<Host>> = hosts.split(',').map(|text| host(text, port)).collect();
        Some(Self { user, hosts: hosts?, path, query })
    }

    /// The first of them alone.
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

/// Several machines as people write them.
pub(crate) fn listed(hosts: &[Host]) -> String {
    let hosts: Vec<String> = hosts.iter().map(|(host, port)| format!("{host}:{port}")).collect();
    hosts.join(",")
}

#[cfg(test)]
mod tests;
