//! Store URLs, and how the stores are opened.

#[cfg(feature = "dynamodb")]
mod dynamodb;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
#[cfg(any(feature = "dynamodb", feature = "postgres", feature = "redis"))]
mod server_url;
#[cfg(feature = "redis")]
mod tiers;

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hapax::MemoryStore;
use hapax_admin::text::printable;
use hapax_core::{Health, Store, StoreError};
use hapax_store_file::{FileStore, OpenError};

#[cfg(feature = "dynamodb")]
use self::dynamodb::DynamoDbUrl;
#[cfg(feature = "postgres")]
use self::postgres::PostgresUrl;
#[cfg(feature = "redis")]
use self::redis::RedisUrl;
#[cfg(feature = "redis")]
use self::tiers::TiersUrl;
use crate::failure::{Code, Failure};
use crate::nearest::nearest;

/// The default store.
pub(crate) const STORE_DEFAULT: &str = "file:./hapax-data";

/// The largest outcome that any store accepts, in bytes.
pub(crate) const OUTCOME_BYTES_MAX: usize = hapax_store_file::OUTCOME_BYTES_MAX;

/// How long a file store waits to gather callers that were answered together into one batch: less than a sync of most
/// disks takes. Syncs compete with callers for the same cores.
const GATHER_MAX: Duration = Duration::from_micros(100);

/// All schemes.
const SCHEMES: &[&str] = &[
    "file",
    "memory",
    #[cfg(feature = "postgres")]
    "postgres",
    #[cfg(feature = "postgres")]
    "postgresql",
    #[cfg(feature = "redis")]
    "redis",
    #[cfg(feature = "redis")]
    "rediss",
    #[cfg(feature = "redis")]
    "redis+sentinel",
    #[cfg(feature = "redis")]
    "rediss+sentinel",
    #[cfg(feature = "redis")]
    "redis+cluster",
    #[cfg(feature = "redis")]
    "rediss+cluster",
    #[cfg(feature = "dynamodb")]
    "dynamodb",
];

/// The URL of a store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum StoreUrl {
    /// A directory.
    File(PathBuf),
    /// The memory of this process.
    Memory,
    /// A DynamoDB table.
    #[cfg(feature = "dynamodb")]
    DynamoDb(Box<DynamoDbUrl>),
    /// A PostgreSQL database.
    #[cfg(feature = "postgres")]
    Postgres(Box<PostgresUrl>),
    /// A Redis server or a cluster of them.
    #[cfg(feature = "redis")]
    Redis(Box<RedisUrl>),
    /// Another store with Redis in front of it.
    #[cfg(feature = "redis")]
    Tiers(Box<TiersUrl>),
}

/// The steps of a migration to the layout of this version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Migration {
    /// None if there was no store.
    pub(crate) from: Option<u32>,
    pub(crate) to: u32,
    pub(crate) steps: Vec<String>,
}

/// The access that a command needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// Read only, concurrently with an owner.
    Read,
    /// Read and write.
    Write,
}

impl StoreUrl {
    /// Parses a URL. Errors contain at most its scheme: the rest may contain a password.
    pub(crate) fn parse(url: &str) -> Result<Self, Failure> {
        let invalid = |message: String| Failure::new(Code::StoreUrlInvalid, message);
        let Some((scheme, rest)) = url.split_once(':') else {
            return Err(invalid("the store URL has no scheme".to_owned()).hint(
                "write file:DIR for a directory, memory: for a store in memory, postgres://HOST/DATABASE or redis://HOST for a \
                 server",
            ));
        };
        match scheme {
            "memory" if rest.is_empty() => Ok(Self::Memory),
            "memory" => {
                Err(invalid("memory: has nothing after the colon".to_owned()).hint("write memory:"))
            }
            "file" => directory(rest)
                .map(Self::File)
                .ok_or_else(|| invalid("file: is not followed by a directory of this machine".to_owned()))
                .map_err(|failure| {
                    failure.hint("write file:DIR, such as file:./hapax-data or file:/var/lib/hapax")
                }),
            #[cfg(feature = "postgres")]
            "postgres" | "postgresql" => PostgresUrl::parse(url).map(Box::new).map(Self::Postgres).map_err(|why| {
                invalid(format!("{scheme}: {why}"))
                    .hint("write postgres://USER@HOST:PORT/DATABASE?schema=NAME; see docs/guide/postgres.md")
            }),
            #[cfg(feature = "redis")]
            "redis" | "rediss" | "redis+sentinel" | "rediss+sentinel" | "redis+cluster" | "rediss+cluster" => RedisUrl::parse(url).map(Box::new).map(Self::Redis).map_err(|why| {
                invalid(format!("{scheme}: {why}"))
                    .hint("write redis://HOST:PORT/DATABASE?prefix=NAME:, or rediss:// for TLS; see docs/guide/redis.md")
            }),
            #[cfg(feature = "dynamodb")]
            "dynamodb" => DynamoDbUrl::parse(url).map(Box::new).map(Self::DynamoDb).map_err(|why| {
                invalid(format!("{scheme}: {why}"))
                    .hint("write dynamodb://TABLE?region=REGION; see docs/guide/dynamodb.md")
            }),
            _ => Err(match feature_of(scheme) {
                Some(feature) => invalid(format!("this binary was built without {scheme}: stores"))
                    .hint(format!("build it with --features {feature}")),
                None => invalid(format!("unknown scheme {scheme:?}")).hint(known_store(scheme)),
            }),
        }
    }

    /// The same store with a fast tier in front of it, if there is one.
    pub(crate) fn with_fast_tier(self, fast: Option<&str>) -> Result<Self, Failure> {
        match fast {
            None => Ok(self),
            #[cfg(feature = "redis")]
            Some(fast) => TiersUrl::parse(self, fast).map(Box::new).map(Self::Tiers),
            #[cfg(not(feature = "redis"))]
            Some(_) => {
                Err(Failure::new(Code::StoreUrlInvalid, "this binary was built without redis: stores")
                    .hint("build it with --features redis, or remove `fast`"))
            }
        }
    }

    /// The directory of the store, if it has one.
    pub(crate) fn directory(&self) -> Option<&Path> {
        match self {
            Self::File(directory) => Some(directory),
            _ => None,
        }
    }

    /// Whether the store is on another machine and used without TLS.
    pub(crate) fn is_unencrypted(&self) -> bool {
        match self {
            Self::File(_) | Self::Memory => false,
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => url.is_unencrypted(),
            #[cfg(feature = "redis")]
            Self::Redis(url) => url.is_unencrypted(),
            #[cfg(feature = "redis")]
            Self::Tiers(tiers) => tiers.is_unencrypted(),
            #[cfg(feature = "dynamodb")]
            Self::DynamoDb(url) => url.is_unencrypted(),
        }
    }

    /// The largest outcome that the store accepts, in bytes.
    pub(crate) fn outcome_bytes_max(&self) -> usize {
        match self {
            Self::Memory => usize::MAX,
            Self::File(_) => OUTCOME_BYTES_MAX,
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => url.options.outcome_bytes_limit(),
            #[cfg(feature = "redis")]
            Self::Redis(url) => url.options.outcome_bytes_limit(),
            #[cfg(feature = "redis")]
            Self::Tiers(tiers) => tiers.store.outcome_bytes_max(),
            #[cfg(feature = "dynamodb")]
            Self::DynamoDb(url) => url.options.outcome_bytes_limit(),
        }
    }

    /// The hint about a route limit above that.
    pub(crate) fn outcome_hint(&self) -> &'static str {
        match self {
            Self::File(_) | Self::Memory => "lower it: the limit of the store is fixed",
            #[cfg(any(feature = "dynamodb", feature = "postgres", feature = "redis"))]
            _ => "lower it, or raise outcome_bytes_max in the store URL and restart",
        }
    }

    /// Migrates the store to the layout of this version, or returns the steps that this would take. A store with a single
    /// layout so far is only opened, which refuses other versions.
    pub(crate) async fn migrate(&self, is_dry: bool) -> Result<Migration, Failure> {
        let version = match self {
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => {
                return url.migrate(is_dry).await.map_err(|error| self.failure(error, Access::Write));
            }
            #[cfg(feature = "dynamodb")]
            Self::DynamoDb(url) => {
                return url.migrate(is_dry).await.map_err(|error| self.failure(error, Access::Write));
            }
            #[cfg(feature = "redis")]
            Self::Tiers(tiers) => return Box::pin(tiers.store.migrate(is_dry)).await,
            Self::File(_) | Self::Memory => hapax_store_file::VERSION,
            #[cfg(feature = "redis")]
            Self::Redis(_) => hapax_store_redis::VERSION,
        };
        let _ = is_dry;
        // Opening it checks its version.
        drop(self.open_shared(Access::Read).await?);
        Ok(Migration { from: Some(version), to: version, steps: Vec::new() })
    }

    /// Opens the store, and creates it if it does not exist. Only for processes that run operations with it.
    pub(crate) async fn open_or_create(&self) -> Result<Arc<dyn Store>, Failure> {
        let opened = match self {
            Self::Memory => Ok(Arc::new(MemoryStore::new()) as Arc<dyn Store>),
            Self::File(directory) => FileStore::options().gather(GATHER_MAX).open(directory).map(shared),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => url.open_or_create().await.map(shared),
            #[cfg(feature = "redis")]
            Self::Redis(url) => url.open_or_create().await.map(shared),
            #[cfg(feature = "redis")]
            Self::Tiers(tiers) => return tiers.open_or_create().await,
            #[cfg(feature = "dynamodb")]
            Self::DynamoDb(url) => url.open().await.map(shared),
        };
        opened.map_err(|error| self.failure(error, Access::Write))
    }

    /// Opens the store. A missing store is not created: its name may be misspelled.
    pub(crate) async fn open(&self, access: Access) -> Result<Arc<dyn Store>, Failure> {
        let opened = match self {
            Self::Memory => Ok(Arc::new(MemoryStore::new()) as Arc<dyn Store>),
            Self::File(directory) => open_file(directory, access).map(shared),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => url.open().await.map(shared),
            #[cfg(feature = "redis")]
            Self::Redis(url) => url.open().await.map(shared),
            #[cfg(feature = "redis")]
            Self::Tiers(tiers) => return tiers.open(access).await,
            #[cfg(feature = "dynamodb")]
            Self::DynamoDb(url) => url.open().await.map(shared),
        };
        opened.map_err(|error| self.failure(error, access))
    }

    /// The health of the server if it has no store yet; none for stores without a server. Nothing is created.
    pub(crate) async fn server_health(&self) -> Result<Option<Health>, Failure> {
        let health: Result<Health, StoreError> = match self {
            Self::Memory | Self::File(_) => return Ok(None),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => url.options.clone().health().await,
            #[cfg(feature = "redis")]
            Self::Redis(url) => url.options.clone().health().await,
            // Promises are made by the store behind the fast tier.
            #[cfg(feature = "redis")]
            Self::Tiers(tiers) => return Box::pin(tiers.store.server_health()).await,
            #[cfg(feature = "dynamodb")]
            Self::DynamoDb(url) => url.options.health().await,
        };
        health.map(Some).map_err(|error| self.failure(error, Access::Read))
    }

    /// The command that creates the store.
    pub(crate) fn created_by(&self) -> &'static str {
        match self {
            #[cfg(feature = "dynamodb")]
            Self::DynamoDb(_) => "`hapax migrate` creates the table",
            #[cfg(feature = "redis")]
            Self::Tiers(tiers) => tiers.store.created_by(),
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => "`hapax migrate` or `hapax serve` creates it",
            _ => "`hapax serve` creates it",
        }
    }

    /// Reads the whole store and fails if anything in it is damaged.
    pub(crate) async fn verify(&self) -> Result<(), Failure> {
        let failed = |error| self.failure(error, Access::Read);
        let found = match self {
            // It belongs to this process and is empty.
            Self::Memory => Vec::new(),
            Self::File(directory) => {
                let store = open_file(directory, Access::Read).map_err(failed)?;
                store.verify().await.map_err(failed)?
            }
            #[cfg(any(feature = "dynamodb", feature = "postgres", feature = "redis"))]
            _ => {
                let found = unreadable(&*self.open(Access::Read).await?).await.map_err(failed)?;
                found.iter().map(|id| format!("record {id} cannot be read")).collect()
            }
        };
        if found.is_empty() { Ok(()) } else { Err(damaged(self).because(printable(&found.join("; ")))) }
    }

    fn failure(&self, error: StoreError, access: Access) -> Failure {
        if matches!(open_error(&error), Some(OpenError::Damaged { .. } | OpenError::Incomplete { .. })) {
            return damaged(self).because(error);
        }
        #[cfg(feature = "redis")]
        if redis::is_missing(&error) {
            return Failure::new(Code::StoreMissing, format!("there is no store at {self}")).hint(
                "check the server, the database number and the prefix; \
                 the first process that runs operations with it creates the store",
            );
        }
        #[cfg(feature = "postgres")]
        if postgres::is_missing(&error) {
            return Failure::new(Code::StoreMissing, format!("there is no store at {self}")).hint(
                "check the server, the database and the schema; `hapax migrate` creates the store, and so does \
                 the first process that runs operations with it",
            );
        }
        #[cfg(feature = "dynamodb")]
        if dynamodb::is_missing(&error) {
            return Failure::new(Code::StoreMissing, format!("there is no store at {self}"))
                .hint("check the table's name and the region; `hapax migrate` creates the table");
        }
        if matches!(open_error(&error), Some(OpenError::Missing { .. })) {
            return Failure::new(Code::StoreMissing, format!("there is no store at {self}")).hint(
                "set the directory with --store file:DIR or HAPAX_STORE_URL; \
                 it is created by the first process that runs operations with it",
            );
        }
        let how = match access {
            Access::Read => "reading",
            Access::Write => "writing",
        };
        Failure::store(error, format!("cannot open {self} for {how}"))
    }

    /// Opens a store that is not in the memory of this process.
    pub(crate) async fn open_shared(&self, access: Access) -> Result<Arc<dyn Store>, Failure> {
        if *self == Self::Memory {
            return Err(Failure::new(
                Code::StoreNotShared,
                "memory: is empty here: such a store belongs to the process that uses it, and ends with it",
            )
            .hint("use a persistent store, such as --store file:./hapax-data"));
        }
        self.open(access).await
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(directory) => write!(f, "file:{}", directory.display()),
            Self::Memory => f.write_str("memory:"),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => url.fmt(f),
            #[cfg(feature = "redis")]
            Self::Redis(url) => url.fmt(f),
            #[cfg(feature = "redis")]
            Self::Tiers(tiers) => tiers.fmt(f),
            #[cfg(feature = "dynamodb")]
            Self::DynamoDb(url) => url.fmt(f),
        }
    }
}

fn shared(store: impl Store) -> Arc<dyn Store> {
    Arc::new(store)
}

/// Opening for writing would create a missing store, so it is opened for reading first.
fn open_file(directory: &Path, access: Access) -> Result<FileStore, StoreError> {
    let reader = FileStore::open_read_only(directory)?;
    match access {
        Access::Read => Ok(reader),
        Access::Write => {
            drop(reader);
            FileStore::open(directory)
        }
    }
}

fn open_error(error: &StoreError) -> Option<&OpenError> {
    error.source().and_then(|cause| cause.downcast_ref::<OpenError>())
}

fn damaged(url: &StoreUrl) -> Failure {
    Failure::new(Code::StoreDamaged, format!("{url} is damaged"))
        .hint("stop the owner of the store, keep a copy, and follow docs/errors/store-damaged.md")
}

/// The URL of a store without its passwords. A user name stays, because another command needs it.
pub(crate) fn without_passwords(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://").filter(|(scheme, _)| *scheme != "file") else {
        return url.to_owned();
    };
    // An unescaped password may contain any character, so everything before the last sign counts as the login.
    let rest = match rest.rsplit_once('@') {
        None => rest.to_owned(),
        Some((login, place)) => match login.split(':').next() {
            Some(user) if !user.is_empty() => format!("{user}@{place}"),
            _ => place.to_owned(),
        },
    };
    let (place, query) = rest.split_once('?').unwrap_or((&rest, ""));
    let kept: Vec<&str> = query.split('&').filter(|option| !option.contains("password")).collect();
    match kept.join("&") {
        query if query.is_empty() => format!("{scheme}://{place}"),
        query => format!("{scheme}://{place}?{query}"),
    }
}

/// `DIR`, `/DIR`, `///DIR` or `//localhost/DIR`; none for another host or an empty path.
fn directory(rest: &str) -> Option<PathBuf> {
    let path = match rest.strip_prefix("//") {
        Some(authority) => authority.strip_prefix("localhost").unwrap_or(authority),
        None => rest,
    };
    let is_remote = rest.starts_with("//") && !path.starts_with('/');
    (!path.is_empty() && !is_remote).then(|| PathBuf::from(path))
}

fn known_store(scheme: &str) -> String {
    match nearest(scheme, SCHEMES.iter().copied()) {
        Some(known) => format!("did you mean {known}: ?"),
        None => {
            let servers = [
                (cfg!(feature = "postgres"), "postgres://HOST/DATABASE"),
                (cfg!(feature = "redis"), "redis://HOST"),
                (cfg!(feature = "dynamodb"), "dynamodb://TABLE"),
            ];
            let known: Vec<&str> = ["file:DIR", "memory:"]
                .into_iter()
                .chain(servers.into_iter().filter(|(is_there, _)| *is_there).map(|(_, url)| url))
                .collect();
            format!("known stores are {}", known.join(", "))
        }
    }
}

/// The feature without which this binary does not support the scheme.
fn feature_of(scheme: &str) -> Option<&'static str> {
    let table = [
        (cfg!(feature = "postgres"), "postgres", &["postgres", "postgresql"][..]),
        (
            cfg!(feature = "redis"),
            "redis",
            &["redis", "rediss", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster"],
        ),
        (cfg!(feature = "dynamodb"), "dynamodb", &["dynamodb"]),
    ];
    let lacking = table.into_iter().filter(|(is_there, ..)| !is_there);
    lacking.filter(|(_, _, schemes)| schemes.contains(&scheme)).map(|(_, feature, _)| feature).next()
}

/// Reads all records and returns the ids of those that cannot be decoded.
#[cfg(any(feature = "dynamodb", feature = "postgres", feature = "redis"))]
async fn unreadable(store: &dyn Store) -> Result<Vec<hapax_core::RecordId>, StoreError> {
    /// The page size.
    const PAGE: usize = 1000;

    let mut query = hapax_core::Query { limit: PAGE, ..Default::default() };
    let mut found = Vec::new();
    loop {
        let page = store.list(&query).await?;
        found.extend(page.unreadable);
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => return Ok(found),
        }
    }
}

#[cfg(test)]
mod tests;
