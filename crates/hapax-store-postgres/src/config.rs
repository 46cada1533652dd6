//! [`Options`]: how to reach a PostgreSQL store, also parsed from a URL. `Debug` shows no passwords.

use std::fmt;
use std::time::Duration;

use hapax_core::{ByteSize, Health, StoreError};
use tokio_postgres::config::{Host, SslMode};

use crate::error::OpenError;
use crate::sql::is_schema;
use crate::store::{self, PostgresStore};
use crate::url;

/// The default schema of the tables.
pub const SCHEMA_DEFAULT: &str = "hapax";

/// The default limit of one call, connecting included.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(2);

/// The default limit of one store's connections, besides the listener's.
pub const POOL_DEFAULT: usize = 8;

/// The default limit of an outcome's size.
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
    pub(crate) create_mode: CreateMode,
    pub(crate) ca: Option<Vec<u8>>,
}

/// Which server address sends notifications.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Listen {
    /// The address of the other connections.
    Same,
    /// The server's own address, bypassing a pooler.
    At(String, u16),
    /// None: callers poll.
    Off,
}

/// Whether a missing store is created.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CreateMode {
    Create,
    RequireExisting,
}

impl Options {
    /// Parses `postgres://[user[:password]@]host[:port]/database[?option=value…]`; `postgresql` is the same.
    ///
    /// Options are `schema`, `timeout_ms`, `pool`, `ca` (a file), `listen` (`host:port` or `off`), `outcome_bytes_max` (a size
    /// such as `16MiB`), and of libpq's options `sslmode`, `channel_binding`, `application_name`, `host` and
    /// `target_session_attrs`.
    ///
    /// # Errors
    /// [`Invalid`](hapax_core::StoreErrorKind::Invalid) if the URL is malformed. The source says why, without the URL.
    pub fn from_url(url: &str) -> Result<Self, StoreError> {
        let wrong = |why: String| StoreError::from(OpenError::Url { why });
        let split = url::split(url).map_err(wrong)?;
        // The driver's error message could repeat the input.
        let config = split
            .driver
            .parse()
            .map_err(|_| wrong("it cannot be parsed, or an option has an unknown value".to_owned()))?;
        let mut options = Self::new(config);
        if options.config.get_hosts().is_empty() {
            return Err(wrong("it names no host".to_owned()));
        }
        if !split.has_sslmode && options.is_local() {
            // Loopback traffic cannot be intercepted, and a local server's certificate is usually self-signed.
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
            create_mode: CreateMode::Create,
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
                return Err(
                    "a schema consists of lower-case letters, digits and underscores, 48 at most".to_owned()
                );
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

    /// The schema of the tables; `hapax` by default. Stores in different schemas share nothing.
    ///
    /// A name that needs quotes is refused when connecting.
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// The limit of one call, connecting included. Two seconds by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The connection limit, besides the listener's; eight by default. Transactions from
    /// [`transaction_of`](PostgresStore::transaction_of) have a pool of the same size.
    pub fn pool(mut self, connections_max: usize) -> Self {
        self.pool = connections_max.max(1);
        self
    }

    /// The largest outcome in bytes; 8 MiB by default. Larger ones fail with
    /// [`TooLarge`](hapax_core::StoreErrorKind::TooLarge) before anything is sent.
    pub fn outcome_bytes_max(mut self, bytes: usize) -> Self {
        self.outcome_bytes_max = bytes;
        self
    }

    /// Receives notifications from this address instead: the server's own, if the URL names a pooler in transaction mode.
    pub fn listen(mut self, host: impl Into<String>, port: u16) -> Self {
        self.listen = Listen::At(host.into(), port);
        self
    }

    /// Receives no notifications: callers that wait for a record poll.
    pub fn without_wake_ups(mut self) -> Self {
        self.listen = Listen::Off;
        self
    }

    /// Trusts the certificate authorities in this PEM text instead of the system's.
    pub fn certificate_authority(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.ca = Some(pem.into());
        self
    }

    /// Fails if there is no store yet, instead of creating one.
    pub fn existing(mut self) -> Self {
        self.create_mode = CreateMode::RequireExisting;
        self
    }

    /// Connects; see [`PostgresStore::connect`].
    ///
    /// # Errors
    /// As [`PostgresStore::connect`].
    pub async fn connect(self) -> Result<PostgresStore, StoreError> {
        PostgresStore::connect_with(self).await
    }

    /// What the server's configuration promises, whether or not it holds a store. Nothing is written.
    ///
    /// # Errors
    /// As [`PostgresStore::connect`], except for the state of the tables.
    pub async fn health(self) -> Result<Health, StoreError> {
        store::server_health(self).await
    }

    /// The largest outcome in bytes.
    pub fn outcome_bytes_limit(&self) -> usize {
        self.outcome_bytes_max
    }

    /// The schema's name.
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

    /// The connect timeout of one of several hosts: one that is down must leave time for the next.
    pub(crate) fn connect_timeout(&self) -> Duration {
        let hosts = u32::try_from(self.config.get_hosts().len()).unwrap_or(u32::MAX).max(1);
        self.timeout / hosts
    }

    /// The listener's connection settings; none without notifications.
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
