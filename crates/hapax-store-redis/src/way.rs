//! The way to the records: one server, or a cluster of them. Whoever asks for a key need not know which.

use std::fmt::Write as _;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use hapax_core::{RecordId, StoreError};
use redis::{Client, FromRedisValue, RedisError, Value};
use tokio::sync::Notify;

use crate::address::{Address, Place, listed};
use crate::cluster::Cluster;
use crate::config::Options;
use crate::error::{Effect, Refusal};
use crate::layout::ID_DIGITS;
use crate::link::{Call, Connected, Deadline, Failed, Link, Right};
use crate::mark::Marks;
use crate::server::Server;
use crate::slots::Territory;

/// How long members of a cluster are left alone after they were asked who has which slot.
const SEARCH_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The way to the records.
#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) options: Arc<Options>,
    shape: Shape,
}

/// The server that has a key, and the connection to it that was in use when the server was looked for.
pub(crate) struct Owner {
    pub(crate) link: Arc<Link>,
    pub(crate) connected: Arc<Connected>,
}

#[derive(Debug)]
enum Shape {
    One(Arc<Link>),
    Cluster(Box<Cluster>),
}

impl Way {
    pub(crate) fn new(options: Options) -> Result<Arc<Self>, StoreError> {
        let options = Arc::new(options);
        let marks = Arc::new(Marks::new(&options.prefix));
        let shape = match &options.place {
            Place::Cluster(named) => Shape::Cluster(Box::new(Cluster::new(options.clone(), marks, named)?)),
            Place::One | Place::Sentinels(_) => {
                let address = Address::new(&options)?;
                Shape::One(Link::new(options.clone(), address, marks, Territory::Everything))
            }
        };
        Ok(Arc::new(Self { options, shape }))
    }

    /// Connects to every server that has records, and looks whether it can be a store.
    pub(crate) async fn open(&self) -> Result<(), StoreError> {
        let deadline = self.deadline();
        if let Shape::Cluster(cluster) = &self.shape {
            cluster.search(deadline).await?;
        }
        let servers = self.servers();
        let connected = join_all(servers.iter().map(|link| link.connected("open", deadline))).await;
        connected.into_iter().try_for_each(|connected| Ok(connected?.server.takes_claims()?))
    }

    /// When a call that begins now must have ended, whatever it sends.
    pub(crate) fn deadline(&self) -> Deadline {
        tokio::time::Instant::now() + self.options.timeout
    }

    /// The name of a record's key, and of the channel on which its changes are told.
    pub(crate) fn key(&self, id: &RecordId) -> String {
        let prefix = &self.options.prefix;
        let mut key = String::with_capacity(prefix.len() + ID_DIGITS);
        key.push_str(prefix);
        write!(key, "{id}").expect("a string takes it");
        key
    }

    /// The server that has a key, and the connection to it.
    pub(crate) async fn owner(
        &self,
        key: &str,
        op: &'static str,
        deadline: Deadline,
    ) -> Result<Owner, StoreError> {
        match &self.shape {
            Shape::One(link) => {
                let connected = link.connected(op, deadline).await?;
                Ok(Owner { link: link.clone(), connected })
            }
            Shape::Cluster(cluster) => cluster.owner(key, op, deadline).await,
        }
    }

    /// Makes a call and reads what is answered.
    pub(crate) async fn call<T: FromRedisValue>(&self, call: Call<'_>) -> Result<T, StoreError> {
        let owner = self.owner(call.key, call.op, call.deadline).await?;
        let (value, _) = self.answer(&call, owner).await?;
        read(call.op, call.effect, value)
    }

    /// Makes a call to the server that has the key, and tells who has answered.
    pub(crate) async fn answer(
        &self,
        call: &Call<'_>,
        owner: Owner,
    ) -> Result<(Value, Arc<Link>), StoreError> {
        match &self.shape {
            Shape::One(_) => {
                let answer = owner.link.answer_on(&owner.connected, call, Right::Owner).await;
                Ok((answer.map_err(Failed::error)?, owner.link))
            }
            Shape::Cluster(cluster) => cluster.answer(call, owner).await,
        }
    }

    /// All servers that have records.
    pub(crate) fn servers(&self) -> Vec<Arc<Link>> {
        match &self.shape {
            Shape::One(link) => vec![link.clone()],
            Shape::Cluster(cluster) => cluster.owners(),
        }
    }

    /// What holds on all servers, looked at now.
    pub(crate) async fn look(&self) -> Result<Server, StoreError> {
        let deadline = self.deadline();
        let looks = self.servers().into_iter().map(|link| async move {
            let address = listed(&[link.address.host()]);
            link.look("health", deadline).await.map(|server| (address, server))
        });
        let looked: Result<Vec<(String, Server)>, StoreError> = join_all(looks).await.into_iter().collect();
        if looked.is_err()
            && let Shape::Cluster(cluster) = &self.shape
        {
            cluster.doubted().notify_one();
        }
        Server::together(looked?).ok_or_else(|| Refusal::ClusterDown.error("health", Effect::Read))
    }

    /// A server that passes on what is told about any record: members of a cluster tell each other.
    pub(crate) async fn listening_post(&self) -> Result<Client, RedisError> {
        match &self.shape {
            Shape::One(link) => link.address.client(&link.address.locate(self.options.timeout).await?.place),
            Shape::Cluster(cluster) => cluster.any().await,
        }
    }

    /// Looks at the servers from time to time, also where nobody calls, and asks for the members of a cluster anew when
    /// there is reason to. Whoever calls may give up before a link would notice by itself.
    pub(crate) async fn keep(way: Weak<Self>) {
        let Some((every, doubted)) = way.upgrade().map(|way| (way.options.check_every, way.doubted())) else {
            return;
        };
        let mut next_check = tokio::time::Instant::now() + every;
        loop {
            let is_doubted = tokio::time::timeout_at(next_check, doubted.notified()).await.is_ok();
            // Also where doubts never end: a member that is gone must not keep the others from being looked at.
            let is_due = tokio::time::Instant::now() >= next_check;
            let Some(way) = way.upgrade() else { return };
            let deadline = way.deadline();
            match &way.shape {
                Shape::One(link) => drop(link.check(deadline).await),
                Shape::Cluster(cluster) => {
                    // Whatever is wrong, calls meet it too, and tell their callers.
                    let _ = cluster.search(deadline).await;
                    if is_due {
                        cluster.check(deadline).await;
                    }
                }
            }
            drop(way);
            if is_due {
                next_check = tokio::time::Instant::now() + every;
            }
            if is_doubted {
                tokio::time::sleep(SEARCH_AGAIN_AFTER).await;
            }
        }
    }

    /// Rings when a search is due. Where there is nothing to search for, never.
    fn doubted(&self) -> Arc<Notify> {
        match &self.shape {
            Shape::One(_) => Arc::new(Notify::new()),
            Shape::Cluster(cluster) => cluster.doubted(),
        }
    }
}

/// Reads an answer as what it should be.
pub(crate) fn read<T: FromRedisValue>(
    op: &'static str,
    effect: Effect,
    value: Value,
) -> Result<T, StoreError> {
    redis::from_redis_value(value).map_err(|_| Refusal::Reply.error(op, effect))
}
