//! What a server says about itself, whether it can be a store, and what may honestly be promised on it.
//!
//! Pure: it reads the texts of `INFO` and decides. It sends nothing.

use hapax_core::Promise;

use crate::config::Eviction;
use crate::error::OpenError;
use crate::script::Dialect;

/// The oldest version that has what the scripts need.
const VERSION_MIN: (u32, u32) = (6, 2);

/// The first version whose `SET` both tests and answers.
const VERSION_SEVEN: (u32, u32) = (7, 0);

/// What nobody can promise away.
const FAILOVER: &str = "the server has replicas: a failover to one loses what it had not copied";

/// What an operator can do about the worst of it.
const UNAWARE: &str = "min-replicas-to-write is not set: a primary that was replaced takes claims until it hears of it, and \
                       they are lost; set it on all servers, to 1 with one replica";

/// What was read of a server that can be a store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Server {
    pub(crate) dialect: Dialect,
    pub(crate) promise: Promise,
    pub(crate) warnings: Vec<String>,
    /// The policy by which it drops keys, unless that was accepted. No record is made on such a server, and those that it
    /// has may be read and finished.
    pub(crate) evicts: Option<String>,
}

/// Whether a server is taken for a member of a cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Membership {
    Alone,
    Member,
}

impl Server {
    /// Judges a server by its `INFO` and, where it may be asked for, its `appendfsync`.
    pub(crate) fn judge(
        info: &str,
        appendfsync: Option<&str>,
        eviction: Eviction,
        membership: Membership,
    ) -> Result<Self, OpenError> {
        let field = |name: &str| field(info, name);
        let version = version(field("redis_version"))?;
        if field("role") == "slave" {
            return Err(OpenError::Replica);
        }
        match (membership, field("cluster_enabled")) {
            (Membership::Alone, "1") => return Err(OpenError::Cluster),
            (Membership::Member, "0") => return Err(OpenError::NotCluster),
            _ => {}
        }
        let mut warnings = Vec::new();
        let policy = field("maxmemory_policy");
        let evicts = policy != "noeviction";
        let mut refused_policy = None;
        if evicts && field("maxmemory") != "0" {
            if eviction == Eviction::Refuse {
                refused_policy = Some(policy.to_owned());
            }
            warnings.push(format!(
                "records may be dropped when the memory is full (maxmemory-policy {policy}), and their operations run again"
            ));
        } else if evicts {
            warnings.push(format!(
                "maxmemory-policy is {policy}: records would be dropped once maxmemory is set"
            ));
        }
        if field("maxmemory") == "0" {
            warnings.push(
                "maxmemory is not set: the server may be ended by its machine when memory runs out"
                    .to_owned(),
            );
        }
        let persistence = persistence(field("aof_enabled"), appendfsync);
        warnings.extend(persistence.map(str::to_owned));
        let has_replicas = !matches!(field("connected_slaves"), "" | "0");
        if has_replicas {
            warnings.push(FAILOVER.to_owned());
        }
        let holds = persistence.is_none() && !has_replicas && !(evicts && field("maxmemory") != "0");
        Ok(Self {
            dialect: if version >= VERSION_SEVEN { Dialect::Seven } else { Dialect::Six },
            promise: if holds { Promise::AtMostOnce } else { Promise::BestEffort },
            warnings,
            evicts: refused_policy,
        })
    }

    /// Whether new records may be made there.
    pub(crate) fn takes_claims(&self) -> Result<(), OpenError> {
        match &self.evicts {
            Some(policy) => Err(OpenError::Evicts { policy: policy.clone() }),
            None => Ok(()),
        }
    }
}

impl Server {
    /// The same where somebody else may become the primary at any time, also when no replica is there just now.
    pub(crate) fn with_failover(mut self) -> Self {
        self.promise = Promise::BestEffort;
        let is_told = self.warnings.iter().any(|warning| warning == FAILOVER);
        if !is_told {
            self.warnings.push(FAILOVER.to_owned());
        }
        self
    }

    /// The same where sentinels may replace it. Members of a cluster tell each other who was replaced; a server that
    /// sentinels watch may hear of it last.
    pub(crate) fn watched(self, info: &str) -> Self {
        let mut server = self.with_failover();
        // It counts the replicas that keep up only where it was told how many it needs.
        if field(info, "min_slaves_good_slaves").is_empty() {
            server.warnings.push(UNAWARE.to_owned());
        }
        server
    }

    /// What holds on all of these together: no more than on the weakest. A warning names those whom it is about, unless
    /// that is all of them.
    pub(crate) fn together(servers: Vec<(String, Self)>) -> Option<Self> {
        let count = servers.len();
        let mut warnings: Vec<(String, Vec<String>)> = Vec::new();
        for (address, server) in &servers {
            for warning in &server.warnings {
                match warnings.iter_mut().find(|(told, _)| told == warning) {
                    Some((_, addresses)) => addresses.push(address.clone()),
                    None => warnings.push((warning.clone(), vec![address.clone()])),
                }
            }
        }
        let warnings = warnings.into_iter().map(|(told, addresses)| {
            if addresses.len() == count { told } else { format!("{told} (on {})", addresses.join(", ")) }
        });
        let (_, weakest) = servers
            .into_iter()
            .reduce(|one, other| if other.1.promise == Promise::BestEffort { other } else { one })?;
        Some(Self { warnings: warnings.collect(), ..weakest })
    }
}

/// What `INFO` says under a name; nothing where it does not say it.
fn field<'a>(info: &'a str, name: &str) -> &'a str {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap_or_default().trim()
}

fn version(found: &str) -> Result<(u32, u32), OpenError> {
    let mut numbers = found.split('.').map_while(|part| part.parse().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) if (major, minor) >= VERSION_MIN => Ok((major, minor)),
        _ => Err(OpenError::Version { found: found.to_owned() }),
    }
}

/// What is lost when the server is killed or its machine loses power; nothing when all is on disk first.
fn persistence(aof_enabled: &str, appendfsync: Option<&str>) -> Option<&'static str> {
    match (aof_enabled, appendfsync) {
        ("1", Some("always")) => None,
        ("1", Some("everysec")) => {
            Some("appendfsync is everysec: a power failure or a slow disk loses up to two seconds of claims")
        }
        ("1", Some(_)) => Some("appendfsync is no: a power failure loses what the system had not written"),
        ("1", None) => {
            Some("the server does not tell its appendfsync, so nothing is promised about power failures")
        }
        _ => Some("appendonly is off: a restart of the server loses claims, and their operations run again"),
    }
}

#[cfg(test)]
mod tests;
