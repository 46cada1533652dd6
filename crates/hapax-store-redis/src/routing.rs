//! [`Router`]: routes calls to one server or to the members of a cluster.

use std::fmt::Write as _;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use hapax_core::{RecordId, StoreError};
use redis::{Client, FromRedisValue, RedisError, Value};
use tokio::sync::Notify;

use crate::address::{Address, Discovery, format_hosts};
use crate::cluster::Cluster;
use crate::config::Options;
use crate::connection::{Call, CallError, Deadline, OpenConnection, ServerConnection, SlotAccess};
use crate::error::{CallFailure, Effect};
use crate::generation::GenerationMarks;
use crate::layout::ID_DIGITS;
use crate::server::Server;
use crate::slots::SlotSet;

/// The minimum time between two refreshes of the slot map.
const REFRESH_INTERVAL_MIN: Duration = Duration::from_millis(100);

/// Routes calls to the server that has their key.
#[derive(Debug)]
pub(crate) struct Router {
    pub(crate) options: Arc<Options>,
    topology: Topology,
}

/// The server that has a key, and the connection that was in use when it was selected.
pub(crate) struct SlotOwner {
    pub(crate) server: Arc<ServerConnection>,
    pub(crate) connected: Arc<OpenConnection>,
}

#[derive(Debug)]
enum Topology {
    Single(Arc<ServerConnection>),
    Cluster(Box<Cluster>),
}

impl Router {
    pub(crate) fn new(options: Options) -> Result<Arc<Self>, StoreError> {
        let options = Arc::new(options);
        let marks = Arc::new(GenerationMarks::new(&options.prefix));
        let topology = match &options.discovery {
            Discovery::Cluster(named) => {
                Topology::Cluster(Box::new(Cluster::new(options.clone(), marks, named)?))
            }
            Discovery::Fixed | Discovery::Sentinel(_) => {
                let address = Address::new(&options)?;
                Topology::Single(ServerConnection::new(options.clone(), address, marks, SlotSet::All))
            }
        };
        Ok(Arc::new(Self { options, topology }))
    }

    /// Connects to every server that has records, and verifies that it can be a store.
    pub(crate) async fn open(&self) -> Result<(), StoreError> {
        let deadline = self.deadline();
        if let Topology::Cluster(cluster) = &self.topology {
            cluster.refresh(deadline).await?;
        }
        let servers = self.servers();
        let connected = join_all(servers.iter().map(|server| server.connected("open", deadline))).await;
        connected.into_iter().try_for_each(|connected| Ok(connected?.server.takes_claims()?))
    }

    /// The deadline of a call that begins now, whatever it sends.
    pub(crate) fn deadline(&self) -> Deadline {
        tokio::time::Instant::now() + self.options.timeout
    }

    /// The key of a record, and the name of its channel.
    pub(crate) fn key(&self, id: &RecordId) -> String {
        let prefix = &self.options.prefix;
        let mut key = String::with_capacity(prefix.len() + ID_DIGITS);
        key.push_str(prefix);
        write!(key, "{id}").expect("writing to a string does not fail");
        key
    }

    /// The server that has a key, and the connection to it.
    pub(crate) async fn owner(
        &self,
        key: &str,
        op: &'static str,
        deadline: Deadline,
    ) -> Result<SlotOwner, StoreError> {
        match &self.topology {
            Topology::Single(server) => {
                let connected = server.connected(op, deadline).await?;
                Ok(SlotOwner { server: server.clone(), connected })
            }
            Topology::Cluster(cluster) => cluster.owner(key, op, deadline).await,
        }
    }

    /// Makes a call and parses the reply.
    pub(crate) async fn call<T: FromRedisValue>(&self, call: Call<'_>) -> Result<T, StoreError> {
        let owner = self.owner(call.key, call.op, call.deadline).await?;
        let (value, _) = self.answer(&call, owner).await?;
        read(call.op, call.effect, value)
    }

    /// Makes a call to the server that has the key; returns the reply and the server that sent it.
    pub(crate) async fn answer(
        &self,
        call: &Call<'_>,
        owner: SlotOwner,
    ) -> Result<(Value, Arc<ServerConnection>), StoreError> {
        match &self.topology {
            Topology::Single(_) => {
                let answer = owner.server.answer_on(&owner.connected, call, SlotAccess::Owned).await;
                Ok((answer.map_err(CallError::error)?, owner.server))
            }
            Topology::Cluster(cluster) => cluster.answer(call, owner).await,
        }
    }

    /// All servers that have records.
    pub(crate) fn servers(&self) -> Vec<Arc<ServerConnection>> {
        match &self.topology {
            Topology::Single(server) => vec![server.clone()],
            Topology::Cluster(cluster) => cluster.owners(),
        }
    }

    /// Probes all servers and combines the results.
    pub(crate) async fn probe(&self) -> Result<Server, StoreError> {
        let deadline = self.deadline();
        let probes = self.servers().into_iter().map(|server| async move {
            let address = format_hosts(&[server.address.host()]);
            server.probe("health", deadline).await.map(|server| (address, server))
        });
        let probed: Result<Vec<(String, Server)>, StoreError> = join_all(probes).await.into_iter().collect();
        if probed.is_err()
            && let Topology::Cluster(cluster) = &self.topology
        {
            cluster.stale().notify_one();
        }
        Server::together(probed?).ok_or_else(|| CallFailure::ClusterDown.error("health", Effect::Read))
    }

    /// A server that receives the messages about every record: cluster members forward them to each other.
    pub(crate) async fn pubsub_client(&self) -> Result<Client, RedisError> {
        match &self.topology {
            Topology::Single(server) => {
                server.address.client(&server.address.locate(self.options.timeout).await?.host)
            }
            Topology::Cluster(cluster) => cluster.any().await,
        }
    }

    /// Checks the servers periodically, also without calls, and refreshes the slot map on request. A caller may time out
    /// before a connection notices that its server is gone.
    pub(crate) async fn maintain(router: Weak<Self>) {
        let Some((every, stale)) =
            router.upgrade().map(|router| (router.options.check_every, router.stale()))
        else {
            return;
        };
        let mut next_check = tokio::time::Instant::now() + every;
        loop {
            let is_stale = tokio::time::timeout_at(next_check, stale.notified()).await.is_ok();
            // Also under constant requests: a member that is gone must not keep the others from being checked.
            let is_due = tokio::time::Instant::now() >= next_check;
            let Some(router) = router.upgrade() else { return };
            let deadline = router.deadline();
            match &router.topology {
                Topology::Single(server) => drop(server.check(deadline).await),
                Topology::Cluster(cluster) => {
                    // Calls meet the same error and return it.
                    let _ = cluster.refresh(deadline).await;
                    if is_due {
                        cluster.check(deadline).await;
                    }
                }
            }
            drop(router);
            if is_due {
                next_check = tokio::time::Instant::now() + every;
            }
            if is_stale {
                tokio::time::sleep(REFRESH_INTERVAL_MIN).await;
            }
        }
    }

    /// Notified when a refresh is due; never for a single server.
    fn stale(&self) -> Arc<Notify> {
        match &self.topology {
            Topology::Single(_) => Arc::new(Notify::new()),
            Topology::Cluster(cluster) => cluster.stale(),
        }
    }
}

/// Parses a reply as the expected type.
pub(crate) fn read<T: FromRedisValue>(
    op: &'static str,
    effect: Effect,
    value: Value,
) -> Result<T, StoreError> {
    redis::from_redis_value(value).map_err(|_| CallFailure::Reply.error(op, effect))
}
