//! [`Options`]: the table and how to reach it, also parsed from a URL, which never holds credentials.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hapax_core::{ByteSize, Clock, Health, StoreError};

use crate::connection::Endpoint;
use crate::credentials::CredentialsSource;
use crate::error::OpenError;
use crate::store::DynamoDbStore;
use crate::table::{self, Step};

/// The default limit of one call, connecting included.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(2);

/// The default limit of an outcome's size. Every kibibyte is billed when it is written.
pub const OUTCOME_BYTES_MAX_DEFAULT: usize = 4 << 20;

/// The default limit of calls in flight. Further ones are queued.
pub const CONNECTIONS_MAX_DEFAULT: usize = 256;

/// The default number of open claims that are remembered. A forgotten one is observed for a lease anew.
pub const CLAIMS_SEEN_MAX_DEFAULT: usize = 100_000;

/// The length of a table's name.
const TABLE_LENGTH: std::ops::RangeInclusive<usize> = 3..=255;

/// How to reach a [`DynamoDbStore`].
///
/// ```
/// use hapax_store_dynamodb::DynamoDbStore;
///
/// let options = DynamoDbStore::options("dynamodb://hapax?region=eu-central-1")?;
/// assert!(DynamoDbStore::options("dynamodb://hapax?region=eu-central-1&regoin=x").is_err());
/// # Ok::<(), hapax_core::StoreError>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct Options {
    pub(crate) table: String,
    pub(crate) region: String,
    pub(crate) endpoint: Endpoint,
    pub(crate) timeout: Duration,
    pub(crate) outcome_bytes_max: usize,
    pub(crate) connections_max: usize,
    pub(crate) claims_seen_max: usize,
    pub(crate) replicas: Replicas,
    pub(crate) credentials: Option<Arc<dyn CredentialsSource>>,
    pub(crate) clock: Option<Arc<dyn Clock>>,
}

/// Whether a table with writable replicas in other Regions is accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Replicas {
    Refuse,
    Accept,
}

impl Options {
    /// Parses `dynamodb://TABLE[?option=value…]`.
    ///
    /// Options are `region` (`AWS_REGION` or `AWS_DEFAULT_REGION` without it), `endpoint` (a URL, for DynamoDB Local and
    /// private endpoints), `timeout_ms`, `outcome_bytes_max` (a size such as `2MiB`), `connections_max` and `replicas=accept`.
    ///
    /// # Errors
    /// [`Invalid`](hapax_core::StoreErrorKind::Invalid) if the URL is malformed. The source says why.
    pub fn from_url(url: &str) -> Result<Self, StoreError> {
        Self::parse(url, |name| std::env::var(name).ok()).map_err(|why| OpenError::Url { why }.into())
    }

    fn parse(url: &str, environment: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let rest = url.strip_prefix("dynamodb://").ok_or("it does not begin with dynamodb://")?;
        let (table, query) = rest.split_once('?').unwrap_or((rest, ""));
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        let table = table.trim_end_matches('/');
        if !TABLE_LENGTH.contains(&table.len()) || !table.bytes().all(is_name) {
            return Err(
                "a table's name has 3 to 255 letters, digits, dots, dashes and underscores".to_owned()
            );
        }
        let pairs: Vec<(&str, String)> = query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                decoded(value)
                    .map(|value| (name, value))
                    .ok_or_else(|| format!("{name} is not percent-encoded correctly"))
            })
            .collect::<Result<_, _>>()?;
        let given =
            |wanted: &str| pairs.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.clone());
        let region = given("region")
            .or_else(|| environment("AWS_REGION"))
            .or_else(|| environment("AWS_DEFAULT_REGION"))
            .ok_or("no region is named, neither as region= nor by AWS_REGION")?;
        let is_region = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if region.is_empty() || !region.bytes().all(is_region) {
            return Err("a region consists of lower-case letters, digits and dashes".to_owned());
        }
        let endpoint = given("endpoint").unwrap_or_else(|| service_of(&region));
        let endpoint = Endpoint::parse(&endpoint)
            .filter(|(_, path)| path == "/")
            .ok_or("endpoint is not http:// or https:// with a host and perhaps a port")?;
        let mut options = Self::new(table, &region, endpoint.0);
        for (name, value) in pairs {
            options = options.set(name, &value)?;
        }
        Ok(options)
    }

    fn new(table: &str, region: &str, endpoint: Endpoint) -> Self {
        Self {
            table: table.to_owned(),
            region: region.to_owned(),
            endpoint,
            timeout: TIMEOUT_DEFAULT,
            outcome_bytes_max: OUTCOME_BYTES_MAX_DEFAULT,
            connections_max: CONNECTIONS_MAX_DEFAULT,
            claims_seen_max: CLAIMS_SEEN_MAX_DEFAULT,
            replicas: Replicas::Refuse,
            credentials: None,
            clock: None,
        }
    }

    fn set(self, name: &str, value: &str) -> Result<Self, String> {
        let positive = || match value.parse::<u32>() {
            Ok(0) | Err(_) => Err(format!("{name} is not a number above zero")),
            Ok(number) => Ok(number),
        };
        let size = || match value.parse::<ByteSize>().and_then(ByteSize::fit::<u32>) {
            Ok(0) => Err(format!("{name} is not a size above zero")),
            Ok(bytes) => Ok(bytes as usize),
            Err(error) => Err(format!("{name}: {error}")),
        };
        Ok(match (name, value) {
            ("region" | "endpoint", _) => self,
            ("timeout_ms", _) => self.timeout(Duration::from_millis(positive()?.into())),
            ("outcome_bytes_max", _) => self.outcome_bytes_max(size()?),
            ("connections_max", _) => self.connections_max(positive()? as usize),
            ("replicas", "accept") => self.danger_accept_replicas(),
            ("replicas", _) => return Err("replicas may be accept and nothing else".to_owned()),
            _ => return Err(format!("there is no option called {name:?}")),
        })
    }

    /// The limit of one call, connecting included. Two seconds by default. An outcome that is too large for one item takes one
    /// call per part, each with this limit.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The largest outcome in bytes; 4 MiB by default. Larger ones fail with
    /// [`TooLarge`](hapax_core::StoreErrorKind::TooLarge) before anything is sent.
    pub fn outcome_bytes_max(mut self, bytes: usize) -> Self {
        self.outcome_bytes_max = bytes;
        self
    }

    /// The limit of calls in flight; 256 by default.
    pub fn connections_max(mut self, connections: usize) -> Self {
        self.connections_max = connections.max(1);
        self
    }

    /// How many open claims are remembered, of this process and of others; 100 000 by default.
    pub fn claims_seen_max(mut self, claims: usize) -> Self {
        self.claims_seen_max = claims;
        self
    }

    /// Signs with these credentials instead of the default sources'.
    pub fn credentials(mut self, source: impl CredentialsSource) -> Self {
        self.credentials = Some(Arc::new(source));
        self
    }

    /// Accepts a table that other Regions write to as well. Two Regions can both claim a key, unless every key's requests are
    /// sent to one home Region.
    pub fn danger_accept_replicas(mut self) -> Self {
        self.replicas = Replicas::Accept;
        self
    }

    /// Uses only this clock. For tests.
    #[doc(hidden)]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Connects; see [`DynamoDbStore::connect`].
    ///
    /// # Errors
    /// As [`DynamoDbStore::connect`].
    pub async fn connect(self) -> Result<DynamoDbStore, StoreError> {
        DynamoDbStore::connect_with(self).await
    }

    /// What the table promises, or the one that [`make`](Self::make) would create. Creates nothing.
    ///
    /// # Errors
    /// If the service cannot be reached, or if a table of that name cannot be a store.
    pub async fn health(&self) -> Result<Health, StoreError> {
        table::preview_health(&crate::client::Client::new(self.clone())).await
    }

    /// The steps that [`make`](Self::make) would take.
    ///
    /// # Errors
    /// If the service cannot be reached, or if a table of that name is not a store.
    pub async fn missing(&self) -> Result<Vec<Step>, StoreError> {
        table::missing(&crate::client::Client::new(self.clone())).await
    }

    /// Creates the table if it is absent, enables the removal of expired items, and returns the steps taken.
    ///
    /// # Errors
    /// If the service cannot be reached or refuses, or if a table of that name is not a store.
    pub async fn make(&self) -> Result<Vec<Step>, StoreError> {
        table::make(&crate::client::Client::new(self.clone())).await
    }

    /// The largest outcome in bytes.
    pub fn outcome_bytes_limit(&self) -> usize {
        self.outcome_bytes_max
    }

    /// The table.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// The region.
    pub fn region(&self) -> &str {
        &self.region
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("table", &self.table)
            .field("region", &self.region)
            .field("endpoint", &self.endpoint)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// The endpoint of a region.
fn service_of(region: &str) -> String {
    let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    format!("https://dynamodb.{region}.{domain}")
}

/// Decodes `%XX` in a query value.
fn decoded(value: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests;
