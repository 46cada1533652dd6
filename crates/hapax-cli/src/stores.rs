//! URL to store: the only list of stores.

#[cfg(feature = "dynamodb")]
mod dynamodb;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "redis")]
mod tiers;
#[cfg(any(feature = "dynamodb", feature = "postgres", feature = "redis"))]
mod typed;

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hapax::MemoryStore;
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
use crate::output::printable;

/// The store that is used when none is named.
pub(crate) const STORE_DEFAULT: &str = "file:./hapax-data";

/// The most bytes of an outcome that any store takes.
pub(crate) const OUTCOME_BYTES_MAX: usize = hapax_store_file::OUTCOME_BYTES_MAX;

/// How long a file store waits for those who were answered together: shorter than a sync of most disks. The cores that
/// callers are served on are those that syncs take their time from.
const GATHER_MAX: Duration = Duration::from_micros(100);

/// Every scheme, as people type it.
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

/// Where the records are.
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

/// What was done, or would be, to bring a store to the layout of this version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Migration {
    /// None where there was no store.
    pub(crate) from: Option<u32>,
    pub(crate) to: u32,
    pub(crate) steps: Vec<String>,
}

/// What a command wants of the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// Only to read, beside whoever owns the store.
    Read,
    /// To change it.
    Write,
}

impl StoreUrl {
    /// Reads what was typed. Errors name the scheme only: the rest of a URL may hold a password.
    pub(crate) fn parse(url: &str) -> Result<Self, Failure> {
        let invalid = |message: String| Failure::new(Code::StoreUrlInvalid, message);
        let Some((scheme, rest)) = url.split_once(':') else {
            return Err(invalid("the store has no scheme".to_owned()).hint(
                "write file:DIR for a directory, memory: for a store in memory, postgres://HOST/DATABASE or redis://HOST for a \
                 server",
            ));
        };
        match scheme {
            "memory" if rest.is_empty() => Ok(Self::Memory),
            "memory" => {
                Err(invalid("memory: takes nothing after the colon".to_owned()).hint("write memory:"))
            }
            "file" => directory(rest)
                .map(Self::File)
                .ok_or_else(|| invalid("file: names no directory of this machine".to_owned()))
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
                Some(feature) => invalid(format!("this program was built without {scheme}: stores"))
                    .hint(format!("build it with the feature {feature}")),
                None => invalid(format!("there is no store called {scheme:?}")).hint(known_store(scheme)),
            }),
        }
    }

    /// The same store with a fast tier in front of it, if there is one.
    pub(crate) fn behind(self, fast: Option<&str>) -> Result<Self, Failure> {
        match fast {
            None => Ok(self),
            #[cfg(feature = "redis")]
            Some(fast) => TiersUrl::parse(self, fast).map(Box::new).map(Self::Tiers),
            #[cfg(not(feature = "redis"))]
            Some(_) => {
                Err(Failure::new(Code::StoreUrlInvalid, "this program was built without redis: stores")
                    .hint("build it with the feature redis, or leave `fast` out"))
            }
        }
    }

    /// The directory that the store is in, where it is in one.
    pub(crate) fn directory(&self) -> Option<&Path> {
        match self {
            Self::File(directory) => Some(directory),
            _ => None,
        }
    }

    /// Whether the store is on another machine and somebody on the way to it could read along.
    pub(crate) fn is_in_clear(&self) -> bool {
        match self {
            Self::File(_) | Self::Memory => false,
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => url.is_in_clear(),
            #[cfg(feature = "redis")]
            Self::Redis(url) => url.is_in_clear(),
            #[cfg(feature = "redis")]
            Self::Tiers(tiers) => tiers.is_in_clear(),
            #[cfg(feature = "dynamodb")]
            Self::DynamoDb(url) => url.is_in_clear(),
        }
    }

    /// The largest outcome that the store takes, in bytes.
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

    /// What to do about a route that keeps more than that.
    pub(crate) fn outcome_hint(&self) -> &'static str {
        match self {
            Self::File(_) | Self::Memory => "lower it: the store takes no more",
            #[cfg(any(feature = "dynamodb", feature = "postgres", feature = "redis"))]
            _ => "lower it, or raise outcome_bytes_max in the URL of the store and start again",
        }
    }

    /// Brings the store to the layout of this version, or tells what that would take. Where there is one layout so far,
    /// the store is told as it is, and one of another version is refused.
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
        // Opening it compares its version with ours.
        drop(self.open_shared(Access::Read).await?);
        Ok(Migration { from: Some(version), to: version, steps: Vec::new() })
    }

    /// Opens the store, and makes it where there is none: for whoever runs operations with it.
    pub(crate) async fn open_or_make(&self) -> Result<Arc<dyn Store>, Failure> {
        let opened = match self {
            Self::Memory => Ok(Arc::new(MemoryStore::new()) as Arc<dyn Store>),
            Self::File(directory) => FileStore::options().gather(GATHER_MAX).open(directory).map(shared),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => url.open_or_make().await.map(shared),
            #[cfg(feature = "redis")]
            Self::Redis(url) => url.open_or_make().await.map(shared),
            #[cfg(feature = "redis")]
            Self::Tiers(tiers) => return tiers.open_or_make().await,
            #[cfg(feature = "dynamodb")]
            Self::DynamoDb(url) => url.open().await.map(shared),
        };
        opened.map_err(|error| self.failure(error, Access::Write))
    }

    /// Opens the store. It is never created here: an empty store under a mistyped name helps nobody.
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

    /// What the server promises as it is set up, where no store is on it yet; none for a store that is on no server. Nothing
    /// is made.
    pub(crate) async fn server_health(&self) -> Result<Option<Health>, Failure> {
        let health = match self {
            Self::Memory | Self::File(_) => return Ok(None),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => url.options.clone().health().await,
            #[cfg(feature = "redis")]
            Self::Redis(url) => url.options.clone().health().await,
            // It is the store behind that promises.
            #[cfg(feature = "redis")]
            Self::Tiers(tiers) => return Box::pin(tiers.store.server_health()).await,
            #[cfg(feature = "dynamodb")]
            Self::DynamoDb(url) => url.options.health().await,
        };
        health.map(Some).map_err(|error: StoreError| self.failure(error, Access::Read))
    }

    /// Which command makes the store.
    pub(crate) fn made_by(&self) -> &'static str {
        match self {
            #[cfg(feature = "dynamodb")]
            Self::DynamoDb(_) => "`hapax migrate` makes the table",
            #[cfg(feature = "redis")]
            Self::Tiers(tiers) => tiers.store.made_by(),
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => "`hapax migrate` or `hapax serve` makes it",
            _ => "`hapax serve` makes it",
        }
    }

    /// Reads all of the store and fails if anything in it is damaged.
    pub(crate) async fn verify(&self) -> Result<(), Failure> {
        let failed = |error| self.failure(error, Access::Read);
        let found = match self {
            // That of this very process, and empty.
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
                 the first process that runs operations with it makes the store",
            );
        }
        #[cfg(feature = "postgres")]
        if postgres::is_missing(&error) {
            return Failure::new(Code::StoreMissing, format!("there is no store at {self}")).hint(
                "check the server, the database and the schema; `hapax migrate` makes the store, and so does \
                 the first process that runs operations with it",
            );
        }
        #[cfg(feature = "dynamodb")]
        if dynamodb::is_missing(&error) {
            return Failure::new(Code::StoreMissing, format!("there is no store at {self}"))
                .hint("check the table's name and the region; `hapax migrate` makes the table");
        }
        if matches!(open_error(&error), Some(OpenError::Missing { .. })) {
            return Failure::new(Code::StoreMissing, format!("there is no store at {self}")).hint(
                "name the directory with --store file:DIR or HAPAX_STORE_URL; \
                 it is made by the first process that runs operations with it",
            );
        }
        let how = match access {
            Access::Read => "reading",
            Access::Write => "writing",
        };
        Failure::store(error, format!("cannot open {self} for {how}"))
    }

    /// Opens a store that outlives this process.
    pub(crate) async fn open_shared(&self, access: Access) -> Result<Arc<dyn Store>, Failure> {
        if *self == Self::Memory {
            return Err(Failure::new(
                Code::StoreNotShared,
                "memory: is empty here: such a store lives and ends with the process that uses it",
            )
            .hint("name a store that is kept, such as --store file:./hapax-data"));
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

/// Opening for writing makes what is missing, so what is there is looked at first.
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

/// The URL of a store as it was typed, without the passwords in it: a user stays, because another command needs it.
pub(crate) fn without_passwords(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://").filter(|(scheme, _)| *scheme != "file") else {
        return url.to_owned();
    };
    // A password that is not escaped may hold anything, so all that is before the last sign counts as the login.
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

/// `DIR`, `/DIR`, `///DIR` or `//localhost/DIR`; none for another host or for nothing.
fn directory(rest: &str) -> Option<PathBuf> {
    let path = match rest.strip_prefix("//") {
        Some(authority) => authority.strip_prefix("localhost").unwrap_or(authority),
        None => rest,
    };
    let is_foreign = rest.starts_with("//") && !path.starts_with('/');
    (!path.is_empty() && !is_foreign).then(|| PathBuf::from(path))
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

/// The feature that a program lacks which knows nothing of this scheme.
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

/// Reads every record and names those that cannot be read.
#[cfg(any(feature = "dynamodb", feature = "postgres", feature = "redis"))]
async fn unreadable(store: &dyn Store) -> Result<Vec<hapax_core::RecordId>, StoreError> {
    /// How many records are looked through at a time.
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
