//! [`Server`]: a server's properties, whether it can be a store, and what can be promised on it.
//!
//! Pure: it parses the output of `INFO`. It sends nothing.

use hapax_core::Promise;

use crate::config::Eviction;
use crate::error::OpenError;
use crate::script::CommandSet;

/// The oldest version with the commands that the scripts need.
const VERSION_MIN: (u32, u32) = (6, 2);

/// The first version whose `SET` accepts `NX GET`.
const VERSION_SEVEN: (u32, u32) = (7, 0);

/// The risk that no setting removes.
const FAILOVER: &str = "the server has replicas: a failover to one loses what it had not copied";

/// The setting that reduces it.
const UNAWARE: &str = "min-replicas-to-write is not set: a replaced primary takes claims until it learns of the failover, and \
                       they are lost; set it on all servers, to 1 with one replica";

/// The properties of a server that can be a store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Server {
    pub(crate) commands: CommandSet,
    pub(crate) promise: Promise,
    pub(crate) warnings: Vec<String>,
    /// The policy by which it evicts keys, unless that was accepted. No record is created on such a server; existing ones
    /// may be read and finished.
    pub(crate) evicts: Option<String>,
}

/// Whether a server is used as a cluster member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Membership {
    Alone,
    Member,
}

impl Server {
    /// Evaluates a server by its `INFO` and, if CONFIG is permitted, its `appendfsync`.
    pub(crate) fn evaluate(
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
                "records may be evicted when the memory is full (maxmemory-policy {policy}), and their operations run again"
            ));
        } else if evicts {
            warnings.push(format!(
                "maxmemory-policy is {policy}: records would be evicted once maxmemory is set"
            ));
        }
        if field("maxmemory") == "0" {
            warnings.push(
                "maxmemory is not set: the operating system may kill the server when memory runs out"
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
            commands: if version >= VERSION_SEVEN { CommandSet::Redis7 } else { CommandSet::Redis6 },
            promise: if holds { Promise::AtMostOnce } else { Promise::BestEffort },
            warnings,
            evicts: refused_policy,
        })
    }

    /// Fails if no new records may be created there.
    pub(crate) fn takes_claims(&self) -> Result<(), OpenError> {
        match &self.evicts {
            Some(policy) => Err(OpenError::Evicts { policy: policy.clone() }),
            None => Ok(()),
        }
    }
}

impl Server {
    /// The same with possible failover, even if no replica is connected at present.
    pub(crate) fn with_failover(mut self) -> Self {
        self.promise = Promise::BestEffort;
        let is_listed = self.warnings.iter().any(|warning| warning == FAILOVER);
        if !is_listed {
            self.warnings.push(FAILOVER.to_owned());
        }
        self
    }

    /// The same under Sentinel. Cluster members learn of a failover from each other; a server under Sentinel may be the last
    /// to learn of it.
    pub(crate) fn watched(self, info: &str) -> Self {
        let mut server = self.with_failover();
        // The server reports this field only if min-replicas-to-write is set.
        if field(info, "min_slaves_good_slaves").is_empty() {
            server.warnings.push(UNAWARE.to_owned());
        }
        server
    }

    /// Combines several servers: the promise is that of the weakest. A warning lists the servers that it concerns, unless it
    /// concerns all.
    pub(crate) fn together(servers: Vec<(String, Self)>) -> Option<Self> {
        let count = servers.len();
        let mut warnings: Vec<(String, Vec<String>)> = Vec::new();
        for (address, server) in &servers {
            for warning in &server.warnings {
                match warnings.iter_mut().find(|(known, _)| known == warning) {
                    Some((_, addresses)) => addresses.push(address.clone()),
                    None => warnings.push((warning.clone(), vec![address.clone()])),
                }
            }
        }
        let warnings = warnings.into_iter().map(|(warning, addresses)| {
            if addresses.len() == count {
                warning
            } else {
                format!("{warning} (on {})", addresses.join(", "))
            }
        });
        let (_, weakest) = servers
            .into_iter()
            .reduce(|one, other| if other.1.promise == Promise::BestEffort { other } else { one })?;
        Some(Self { warnings: warnings.collect(), ..weakest })
    }
}

/// The value of a field of `INFO`; empty if absent.
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

/// What is lost when the server is killed or loses power; `None` if every write is on disk first.
fn persistence(aof_enabled: &str, appendfsync: Option<&str>) -> Option<&'static str> {
    match (aof_enabled, appendfsync) {
        ("1", Some("always")) => None,
        ("1", Some("everysec")) => {
            Some("appendfsync is everysec: a power failure or a slow disk loses up to two seconds of claims")
        }
        ("1", Some(_)) => {
            Some("appendfsync is no: a power failure loses the writes that were not yet on disk")
        }
        ("1", None) => {
            Some("the server does not reveal its appendfsync, so nothing is promised about power failures")
        }
        _ => Some("appendonly is off: a restart of the server loses claims, and their operations run again"),
    }
}

#[cfg(test)]
mod tests;
