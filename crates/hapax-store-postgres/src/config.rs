//! [`Options`]: how to reach a PostgreSQL store, also as a URL. Passwords are not shown by `Debug`.

use std::fmt;
use std::time::Duration;

use hapax_core::{ByteSize, Health, StoreError};
use tokio_postgres::config::{Host, SslMode};

use crate::error::OpenError;
use crate::sql::is_schema;
use crate::store::{self, PostgresStore};
use crate::url;

/// The schema that the tables are in unless told otherwise.
pub const SCHEMA_DEFAULT: &str = "hapax";

/// How long one call may take unless told otherwise, connecting included.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(2);

/// The most connections that one store holds unless told otherwise, beside the one that listens.
pub const POOL_DEFAULT: usize = 8;

/// The most bytes that an outcome may have unless told otherwise.
pub const OUTCOME_BYTES_MAX_DEFAULT: usize = 8 << 20;

/// How to reach a [`PostgresStore`].
///
/// ```
/// use hapax_store_postgres::PostgresStore;
///
/// let options = PostgresStore::options("postgres://shop@127.0.0.1/orders?schema=shop_hapax")?;
/// assert!(PostgresStore::options("postgres://127.0.0.1/orders?shema=shop").is_err());
/// # Ok::<(), hapax_core::StoreError>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct Options {
    pub(crate) config: tokio_postgres::Config,
    pub(crate) schema: String,
    pub(crate) timeout: Duration,
    pub(crate) pool: usize,
    pub(crate) outcome_bytes_max: usize,
    pub(crate) listen: Listen,
    pub(crate) making: Making,
    pub(crate) ca: Option<Vec<u8>>,
}

/// Where the server tells of changes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Listen {
    /// Where everything else goes.
    Same,
    /// Past a pooler, at the server itself.
    At(String, u16),
    /// Nowhere: whoever waits looks from time to time.
    Off,
}

/// Whether a store that is not there yet is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Making {
    Make,
    Refuse,
}

impl Options {
    /// Reads `postgres://[user[:password]@]host[:port]/database[?option=value…]`; `postgresql` is the same.
    ///
    /// Options are `schema`, `timeout_ms`, `pool`, `ca` (a file), `listen` (`host:port` or `off`), `outcome_bytes_max` (a size
    /// such as `16MiB`), and of those that the server's own clients know `sslmode`, `channel_binding`, `application_name`, `host` and
    /// `target_session_attrs`.
    ///
    /// # Errors
    /// [`Invalid`](hapax_core::StoreErrorKind::Invalid) when the URL is none. The source says why, without the URL.
    pub fn from_url(url: &str) -> Result<Self, StoreError> {
        let wrong = |why: String| StoreError::from(OpenError::Url { why });
        let split = url::split(url).map_err(wrong)?;
        // The driver's own words could repeat what was typed.
        let config = split
            .driver
            .parse()
            .map_err(|_| wrong("it cannot be read, or an option has a value that is not known".to_owned()))?;
        let mut options = Self::new(config);
        if options.config.get_hosts().is_empty() {
            return Err(wrong("it names no host".to_owned()));
        }
        if !split.has_sslmode && options.is_local() {
            // Nobody listens in on this machine, and its certificate is usually one that nobody signed.
            options.config.ssl_mode(SslMode::Disable);
        }
        for (name, value) in split.own {
            options = options.set(&name, &value).map_err(wrong)?;
        }
        Ok(options)
    }

    fn new(config: tokio_postgres::Config) -> Self {
        Self {
            config,
            schema: SCHEMA_DEFAULT.to_owned(),
            timeout: TIMEOUT_DEFAULT,
            pool: POOL_DEFAULT,
            outcome_bytes_max: OUTCOME_BYTES_MAX_DEFAULT,
            listen: Listen::Same,
            making: Making::Make,
            ca: None,
        }
    }

    fn set(self, name: &str, value: &str) -> Result<Self, String> {
        let number = || match value.parse::<u32>() {
            Ok(0) | Err(_) => Err(format!("{name} is not a number above zero")),
            Ok(number) => Ok(number),
        };
        let size = || match value.parse::<ByteSize>().and_then(ByteSize::fit::<u32>) {
            Ok(0) => Err(format!("{name} is not a size above zero")),
            Ok(bytes) => Ok(bytes as usize),
            Err(error) => Err(format!("{name}: {error}")),
        };
        Ok(match name {
            "schema" if is_schema(value) => self.schema(value),
            "schema" => {
                return Err("a schema has small letters, digits and underscores, 48 at most".to_owned());
            }
            "timeout_ms" => self.timeout(Duration::from_millis(number()?.into())),
            "pool" => self.pool(number()? as usize),
            "outcome_bytes_max" => self.outcome_bytes_max(size()?),
            "listen" if value == "off" => self.without_wake_ups(),
            "listen" => {
                let address =
                    value.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
                let Some((host, port)) = address.filter(|(host, _)| !host.is_empty()) else {
                    return Err("listen is neither host:port nor off".to_owned());
                };
                self.listen(host, port)
            }
            "ca" => {
                let pem = std::fs::read(value)
                    .map_err(|error| format!("the file of ca cannot be read ({error})"))?;
                self.certificate_authority(pem)
            }
            _ => return Err(format!("there is no option called {name:?}")),
        })
    }

    /// The schema that the tables are in; `hapax` by default. Stores in different schemas know nothing of each other.
    ///
    /// A name that needs quotes is refused when connecting.
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// How long one call may take, connecting included. Two seconds by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The most connections, beside the one that listens; eight by default. Transactions that
    /// [`transaction_of`](PostgresStore::transaction_of) gives have as many again.
    pub fn pool(mut self, connections_max: usize) -> Self {
        self.pool = connections_max.max(1);
        self
    }

    /// The most bytes that an outcome may have; 8 MiB by default. Larger ones fail with
    /// [`TooLarge`](hapax_core::StoreErrorKind::TooLarge) before anything is sent.
    pub fn outcome_bytes_max(mut self, bytes: usize) -> Self {
        self.outcome_bytes_max = bytes;
        self
    }

    /// Hears of changes at this address instead: that of the server itself, where the URL names a pooler that hands out
    /// a connection for a transaction only.
    pub fn listen(mut self, host: impl Into<String>, port: u16) -> Self {
        self.listen = Listen::At(host.into(), port);
        self
    }

    /// Hears of no changes: whoever waits for a record looks from time to time.
    pub fn without_wake_ups(mut self) -> Self {
        self.listen = Listen::Off;
        self
    }

    /// Trusts the authorities in this PEM text instead of the system's.
    pub fn certificate_authority(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.ca = Some(pem.into());
        self
    }

    /// Fails when there is no store yet, instead of making one.
    pub fn existing(mut self) -> Self {
        self.making = Making::Refuse;
        self
    }

    /// Connects; see [`PostgresStore::connect`].
    ///
    /// # Errors
    /// As [`PostgresStore::connect`].
    pub async fn connect(self) -> Result<PostgresStore, StoreError> {
        PostgresStore::connect_with(self).await
    }

    /// What the server promises as it is set up, whether or not there is a store on it. Nothing is made.
    ///
    /// # Errors
    /// As [`PostgresStore::connect`], but for what is wrong with the tables.
    pub async fn health(self) -> Result<Health, StoreError> {
        store::server_health(self).await
    }

    /// The most bytes that an outcome may have.
    pub fn outcome_bytes_limit(&self) -> usize {
        self.outcome_bytes_max
    }

    /// The name of the schema.
    pub fn schema_name(&self) -> &str {
        &self.schema
    }

    /// The server and the database, without user and password.
    pub fn address(&self) -> String {
        let ports = self.config.get_ports();
        let hosts = self.config.get_hosts().iter().enumerate().map(|(at, host)| {
            let port = ports.get(at).or(ports.first()).copied().unwrap_or(url::PORT_DEFAULT);
            match host {
                Host::Tcp(name) => format!("{name}:{port}"),
                Host::Unix(path) => format!("{}:{port}", path.display()),
            }
        });
        let database = self.config.get_dbname().or(self.config.get_user()).unwrap_or_default();
        format!("{}/{database}", hosts.collect::<Vec<_>>().join(","))
    }

    /// How long one of several hosts is tried: a machine that is gone must leave time for the next.
    pub(crate) fn connect_timeout(&self) -> Duration {
        let hosts = u32::try_from(self.config.get_hosts().len()).unwrap_or(u32::MAX).max(1);
        self.timeout / hosts
    }

    /// How the connection is made that listens; none where nobody wants to.
    pub(crate) fn listener(&self) -> Option<tokio_postgres::Config> {
        match &self.listen {
            Listen::Off => None,
            Listen::Same => Some(self.config.clone()),
            Listen::At(host, port) => {
                let mut config = tokio_postgres::Config::new();
                config.host(host).port(*port).ssl_mode(self.config.get_ssl_mode());
                config.channel_binding(self.config.get_channel_binding());
                if let Some(user) = self.config.get_user() {
                    config.user(user);
                }
                if let Some(password) = self.config.get_password() {
                    config.password(password);
                }
                if let Some(database) = self.config.get_dbname() {
                    config.dbname(database);
                }
                Some(config)
            }
        }
    }

    fn is_local(&self) -> bool {
        self.config.get_hosts().iter().all(|host| match host {
            Host::Unix(_) => true,
            Host::Tcp(name) => {
                name == "localhost" || name.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
            }
        })
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("address", &self.address())
            .field("schema", &self.schema)
            .field("timeout", &self.timeout)
            .field("pool", &self.pool)
            .field("listen", &self.listen)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
