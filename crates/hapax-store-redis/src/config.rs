//! [`Options`]: how to reach a Redis store, also parsed from a URL. `Debug` shows no passwords.

use std::fmt;
use std::time::Duration;

use hapax_core::{ByteSize, Health, Store as _, StoreError};
use redis::io::tcp::TcpSettings;
use redis::{Client, ConnectionInfo, IntoConnectionInfo};

use crate::address::{self, Discovery, Sentinels};
use crate::error::OpenError;
use crate::script::CommandSet;
use crate::store::RedisStore;

/// The default key prefix.
pub const PREFIX_DEFAULT: &str = "hapax:";

/// The default limit of one call, connecting included.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(2);

/// The default limit of an outcome's size. The server blocks all its clients while it copies one value.
pub const OUTCOME_BYTES_MAX_DEFAULT: usize = 8 << 20;

/// How often the server is checked.
const CHECK_EVERY: Duration = Duration::from_secs(5);

/// The same with Sentinel: until the next check, writes may go to a primary that was replaced and does not know it.
const SENTINEL_CHECK_EVERY: Duration = Duration::from_secs(1);

/// How to reach a [`RedisStore`].
///
/// ```
/// use hapax_store_redis::RedisStore;
///
/// let options = RedisStore::options("redis://127.0.0.1:6379/0?prefix=shop:")?;
/// assert!(RedisStore::options("redis://127.0.0.1:6379?prefx=shop:").is_err());
/// # Ok::<(), hapax_core::StoreError>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct Options {
    pub(crate) info: ConnectionInfo,
    pub(crate) prefix: String,
    pub(crate) timeout: Duration,
    pub(crate) check_every: Duration,
    pub(crate) outcome_bytes_max: usize,
    pub(crate) replicas: u32,
    pub(crate) eviction: Eviction,
    pub(crate) amnesia: Amnesia,
    pub(crate) create_mode: CreateMode,
    pub(crate) commands: Option<CommandSet>,
    pub(crate) discovery: Discovery,
    /// User and password of the sentinels, if they require one.
    pub(crate) sentinel_login: Option<(Option<String>, String)>,
    ca: Option<Vec<u8>>,
}

/// Whether a server that evicts keys is accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Eviction {
    Refuse,
    Accept,
}

/// Whether to go on after the server has lost records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Amnesia {
    Stop,
    Accept,
}

/// Whether a missing store is created.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CreateMode {
    Create,
    RequireExisting,
    /// The server is probed; nothing is written to it.
    ProbeOnly,
}

impl Options {
    /// Parses `redis://[user[:password]@]host[:port][/database][?option=value…]`, or the same with `rediss` for TLS. With
    /// Sentinel, `redis+sentinel://[user[:password]@]host[:port],…/name[/database]` lists the sentinels and the name under
    /// which they monitor the server; user and password are the server's, and those of the sentinels are the options
    /// `sentinel_user` and `sentinel_password`. A cluster is `redis+cluster://[user[:password]@]host[:port],…` with a few seed
    /// nodes; the other members are discovered.
    ///
    /// Options are `prefix`, `timeout_ms`, `replicas`, `ca` (a file), `outcome_bytes_max` (a size such as `16MiB`),
    /// `evict=accept` and `amnesia=accept`.
    ///
    /// # Errors
    /// [`Invalid`](hapax_core::StoreErrorKind::Invalid) if the URL is malformed. The source says why, without the URL.
    pub fn from_url(url: &str) -> Result<Self, StoreError> {
        Self::from_url_over(url, &|options| options)
    }

    /// The same with other defaults, which the URL overrides.
    pub(crate) fn from_url_over(url: &str, defaults: &dyn Fn(Self) -> Self) -> Result<Self, StoreError> {
        let wrong = |why: &str| StoreError::from(OpenError::Url { why: why.to_owned() });
        match url.split_once(':') {
            Some((scheme @ ("redis+sentinel" | "rediss+sentinel"), rest)) => {
                let scheme = scheme.trim_end_matches("+sentinel");
                let (server, sentinels) =
                    address::parse_sentinels(scheme, rest).map_err(|why| wrong(&why))?;
                let watched = |options| defaults(Self { check_every: SENTINEL_CHECK_EVERY, ..options });
                return Ok(Self {
                    discovery: Discovery::Sentinel(sentinels),
                    ..Self::from_url_over(&server, &watched)?
                });
            }
            Some((scheme @ ("redis+cluster" | "rediss+cluster"), rest)) => {
                let scheme = scheme.trim_end_matches("+cluster");
                let (server, members) = address::parse_cluster(scheme, rest).map_err(|why| wrong(&why))?;
                return Ok(Self {
                    discovery: Discovery::Cluster(members),
                    ..Self::from_url_over(&server, defaults)?
                });
            }
            _ => {}
        }
        let mut parsed = redis::parse_redis_url(url).ok_or_else(|| wrong("it cannot be parsed"))?;
        if !matches!(parsed.scheme(), "redis" | "rediss") {
            return Err(wrong("its scheme is neither redis nor rediss"));
        }
        if parsed.fragment().is_some() {
            return Err(wrong("it may not have a fragment (#)"));
        }
        let pairs: Vec<(String, String)> =
            parsed.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
        parsed.set_query(None);
        // The driver's error category does not repeat the input.
        let info = parsed.into_connection_info().map_err(|error| wrong(error.category()))?;
        let mut options = defaults(Self::new(info));
        for (name, value) in pairs {
            options = options.set(&name, &value).map_err(|why| wrong(&why))?;
        }
        Ok(options)
    }

    fn new(info: ConnectionInfo) -> Self {
        Self {
            // Nagle's algorithm would delay pipelined small commands.
            info: info.set_tcp_settings(TcpSettings::default().set_nodelay(true)),
            prefix: PREFIX_DEFAULT.to_owned(),
            timeout: TIMEOUT_DEFAULT,
            check_every: CHECK_EVERY,
            outcome_bytes_max: OUTCOME_BYTES_MAX_DEFAULT,
            replicas: 0,
            eviction: Eviction::Refuse,
            amnesia: Amnesia::Stop,
            create_mode: CreateMode::Create,
            commands: None,
            discovery: Discovery::Fixed,
            sentinel_login: None,
            ca: None,
        }
    }

    fn set(self, name: &str, value: &str) -> Result<Self, String> {
        let number = || value.parse::<u32>().map_err(|_| format!("{name} is not a number"));
        let size = || {
            let size = value.parse::<ByteSize>().and_then(ByteSize::fit::<u32>);
            size.map(|bytes| bytes as usize).map_err(|error| format!("{name}: {error}"))
        };
        Ok(match (name, value) {
            ("prefix", _) => self.prefix(value),
            ("timeout_ms", _) => match number()? {
                0 => return Err("timeout_ms is zero".to_owned()),
                ms => self.timeout(Duration::from_millis(ms.into())),
            },
            ("sentinel_password", _) => {
                let (user, _) = self.sentinel_login.clone().unwrap_or_default();
                Self { sentinel_login: Some((user, value.to_owned())), ..self }
            }
            ("sentinel_user", _) => {
                let (_, password) = self.sentinel_login.clone().unwrap_or_default();
                Self { sentinel_login: Some((Some(value.to_owned()), password)), ..self }
            }
            ("replicas", _) => self.replicas(number()?),
            ("outcome_bytes_max", _) => self.outcome_bytes_max(size()?),
            ("evict", "accept") => self.danger_accept_eviction(),
            ("amnesia", "accept") => self.danger_accept_amnesia(),
            ("evict" | "amnesia", _) => return Err(format!("{name} may be accept and nothing else")),
            ("ca", _) => {
                let pem = std::fs::read(value)
                    .map_err(|error| format!("the file of ca cannot be read ({error})"))?;
                self.certificate_authority(pem)
            }
            _ => return Err(format!("there is no option called {name:?}")),
        })
    }

    /// The key prefix. Stores with different prefixes share nothing.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// The limit of one call, connecting included. Two seconds by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The largest outcome in bytes; 8 MiB by default. Larger ones fail with
    /// [`TooLarge`](hapax_core::StoreErrorKind::TooLarge) before anything is sent.
    pub fn outcome_bytes_max(mut self, bytes: usize) -> Self {
        self.outcome_bytes_max = bytes;
        self
    }

    /// Waits until this many replicas have acknowledged a write. Fewer make the call
    /// [`Unknown`](hapax_core::StoreErrorKind::Unknown), although the write stands on the primary.
    ///
    /// It makes losing a claim in a failover less likely. It does not rule it out.
    pub fn replicas(mut self, replicas: u32) -> Self {
        self.replicas = replicas;
        self
    }

    /// Trusts the certificate authorities in this PEM text instead of the system's, for `rediss`.
    pub fn certificate_authority(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.ca = Some(pem.into());
        self
    }

    /// Fails if there are no records yet, instead of creating an empty store.
    pub fn existing(mut self) -> Self {
        self.create_mode = CreateMode::RequireExisting;
        self
    }

    /// What the server's configuration promises, whether or not it holds a store. Nothing is written.
    ///
    /// # Errors
    /// As [`RedisStore::connect`].
    pub async fn health(self) -> Result<Health, StoreError> {
        let store = Self { create_mode: CreateMode::ProbeOnly, ..self }.connect().await?;
        store.health().await
    }

    /// How often the server is checked; every five seconds by default, and every second with Sentinel, which may have promoted
    /// another primary.
    pub fn check_every(mut self, every: Duration) -> Self {
        self.check_every = every;
        self
    }

    /// Accepts a server that evicts keys when its memory is full. An operation whose record is evicted runs again.
    pub fn danger_accept_eviction(mut self) -> Self {
        self.eviction = Eviction::Accept;
        self
    }

    /// Goes on after the server has lost records. Operations whose records are lost run again.
    pub fn danger_accept_amnesia(mut self) -> Self {
        self.amnesia = Amnesia::Accept;
        self
    }

    /// Claims by script, as on Redis 6.2, on any server version. For tests.
    #[doc(hidden)]
    pub fn claim_by_script(mut self) -> Self {
        self.commands = Some(CommandSet::Redis6);
        self
    }

    /// Connects; see [`RedisStore::connect`].
    ///
    /// # Errors
    /// As [`RedisStore::connect`].
    pub async fn connect(self) -> Result<RedisStore, StoreError> {
        RedisStore::connect_with(self).await
    }

    pub(crate) fn client(&self) -> Result<Client, StoreError> {
        let refused =
            |error: redis::RedisError| OpenError::Certificate { why: error.category().to_owned() }.into();
        match &self.ca {
            #[cfg(feature = "tls")]
            Some(pem) => {
                let certificates = redis::TlsCertificates { client_tls: None, root_cert: Some(pem.clone()) };
                Client::build_with_tls(self.info.clone(), certificates).map_err(refused)
            }
            _ => Client::open(self.info.clone()).map_err(refused),
        }
    }

    /// The largest outcome in bytes.
    pub fn outcome_bytes_limit(&self) -> usize {
        self.outcome_bytes_max
    }

    /// The key prefix.
    pub fn key_prefix(&self) -> &str {
        &self.prefix
    }

    /// The server and the database, or the seed nodes, without user and password.
    pub fn address(&self) -> String {
        let database = self.info.redis_settings().db();
        match &self.discovery {
            Discovery::Fixed => format!("{}/{database}", self.info.addr()),
            Discovery::Sentinel(Sentinels { name, hosts }) => {
                format!("{}/{name}/{database}", address::format_hosts(hosts))
            }
            Discovery::Cluster(members) => address::format_hosts(members),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("address", &self.address())
            .field("prefix", &self.prefix)
            .field("timeout", &self.timeout)
            .field("replicas", &self.replicas)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
