//! A cluster: the slot map, fetched from the members and corrected by their redirections.
//!
//! A call goes to the member that owns its key's slot and follows a redirection when the slot has moved or is migrating:
//! the refused call did nothing, so it may be sent again. Nothing else is sent twice. When a member fails, the call fails
//! with it, and the slot map is refreshed for the next one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use hapax_core::{StoreError, StoreErrorKind};
use parking_lot::RwLock;
use redis::{Client, RedisError, Value};
use tokio::sync::Notify;
use tokio::time::{timeout, timeout_at};

use crate::address::{Address, Host};
use crate::config::Options;
use crate::connection::{Call, CallError, Deadline, ServerConnection, SlotAccess};
use crate::error::{CallFailure, Effect, OpenError, unreachable};
use crate::generation::GenerationMarks;
use crate::probe::MarkCheck;
use crate::routing::SlotOwner;
use crate::slots::{self, Primary, SLOTS, SlotSet, slot_of};

/// How many members one refresh queries, so that one that hangs leaves time for others.
const QUERIES_PER_REFRESH_MAX: usize = 8;

/// How many redirections are followed without a pause. With more, two members do not agree yet.
const IMMEDIATE_REDIRECTIONS_MAX: u32 = 2;

/// How long to wait while two members disagree.
const REDIRECTION_BACKOFF: Duration = Duration::from_millis(10);

/// A cluster.
#[derive(Debug)]
pub(crate) struct Cluster {
    options: Arc<Options>,
    marks: Arc<GenerationMarks>,
    /// Connection settings for any member.
    address: Address,
    /// The seed nodes.
    seeds: Vec<Host>,
    map: RwLock<SlotMap>,
    /// The next member to query; locked during a refresh.
    next_member: tokio::sync::Mutex<usize>,
    stale: Arc<Notify>,
}

/// Which member owns which slot.
#[derive(Debug, Default)]
struct SlotMap {
    /// Incremented by every refresh.
    version: u64,
    connections: HashMap<Host, Arc<ServerConnection>>,
    /// The owner of each slot; empty until the first refresh.
    owners: Vec<Option<Arc<ServerConnection>>>,
}

impl Cluster {
    pub(crate) fn new(
        options: Arc<Options>,
        marks: Arc<GenerationMarks>,
        seeds: &[Host],
    ) -> Result<Self, StoreError> {
        if options.prefix.contains('{') {
            let why = "a prefix with a brace would keep all records of a cluster in one slot".to_owned();
            return Err(OpenError::Url { why }.into());
        }
        Ok(Self {
            address: Address::new(&options)?,
            options,
            marks,
            seeds: seeds.to_vec(),
            map: RwLock::default(),
            next_member: tokio::sync::Mutex::new(0),
            stale: Arc::new(Notify::new()),
        })
    }

    /// Notified when there is reason to believe that the slot map is stale.
    pub(crate) fn stale(&self) -> Arc<Notify> {
        self.stale.clone()
    }

    /// Sends a call to the owner of its key, or to the member it redirects to; returns the reply and the member that sent it.
    pub(crate) async fn answer(
        &self,
        call: &Call<'_>,
        owner: SlotOwner,
    ) -> Result<(Value, Arc<ServerConnection>), StoreError> {
        let SlotOwner { server: mut member, connected } = owner;
        let mut answered = member.answer_on(&connected, call, SlotAccess::Owned).await;
        let mut redirections = 0;
        loop {
            let failed = match answered {
                Ok(answer) => return Ok((answer, member)),
                Err(failed) => failed,
            };
            let CallError::Redirected { to, access, error } = failed else {
                let error = failed.error();
                self.mark_stale_after(&error);
                return Err(error);
            };
            redirections += 1;
            if redirections > IMMEDIATE_REDIRECTIONS_MAX {
                if tokio::time::Instant::now() + REDIRECTION_BACKOFF >= call.deadline {
                    return Err(error);
                }
                tokio::time::sleep(REDIRECTION_BACKOFF).await;
            }
            member = match access {
                SlotAccess::Importing => self.member(&to).map_err(|error| unreachable(&error))?,
                SlotAccess::Owned => {
                    self.moved_owner(slot_of(call.key.as_bytes()), &to, call.deadline).await?
                }
            };
            answered = member.answer(call, access).await;
        }
    }

    /// The owner of a key's slot, and the connection to it.
    pub(crate) async fn owner(
        &self,
        key: &str,
        op: &'static str,
        deadline: Deadline,
    ) -> Result<SlotOwner, StoreError> {
        let member = self.owner_of(slot_of(key.as_bytes()), op, deadline).await?;
        let connected =
            member.connected(op, deadline).await.inspect_err(|error| self.mark_stale_after(error))?;
        Ok(SlotOwner { server: member, connected })
    }

    /// Requests a refresh after a member could not be reached or did not answer.
    fn mark_stale_after(&self, error: &StoreError) {
        if matches!(error.kind(), StoreErrorKind::Unavailable | StoreErrorKind::Unknown) {
            self.stale.notify_one();
        }
    }

    async fn owner_of(
        &self,
        slot: u16,
        op: &'static str,
        deadline: Deadline,
    ) -> Result<Arc<ServerConnection>, StoreError> {
        let slot = usize::from(slot);
        let find = || self.map.read().owners.get(slot).cloned().flatten();
        if let Some(owner) = find() {
            return Ok(owner);
        }
        self.refresh(deadline).await?;
        find().ok_or_else(|| CallFailure::NoOwner.error(op, Effect::Read))
    }

    /// All members that own slots.
    pub(crate) fn owners(&self) -> Vec<Arc<ServerConnection>> {
        let map = self.map.read();
        map.connections.values().filter(|member| !member.slots().is_empty()).cloned().collect()
    }

    /// Any member; round robin.
    pub(crate) async fn any(&self) -> Result<Client, RedisError> {
        let mut next = self.next_member.lock().await;
        let members = self.members();
        *next = next.wrapping_add(1);
        let host = &members[*next % members.len()];
        self.address.client(host)
    }

    /// Checks all members that own slots.
    pub(crate) async fn check(&self, deadline: Deadline) {
        let owners = self.owners();
        let checked = join_all(owners.iter().map(|member| member.check(deadline))).await;
        if checked.iter().any(|checked| !matches!(checked, Ok(MarkCheck::Intact))) {
            self.stale.notify_one();
        }
    }

    /// Refreshes the slot map, and checks the members whose slots have changed.
    pub(crate) async fn refresh(&self, deadline: Deadline) -> Result<(), StoreError> {
        // Another task may hold the lock, and every waiting call has a deadline of its own.
        let refreshed = timeout_at(deadline, self.refresh_locked(deadline)).await;
        refreshed.unwrap_or_else(|_| Err(CallFailure::TimedOut.error("open", Effect::Read)))
    }

    async fn refresh_locked(&self, deadline: Deadline) -> Result<(), StoreError> {
        let seen = self.map.read().version;
        let mut next = self.next_member.lock().await;
        if self.map.read().version != seen {
            // Another task has just refreshed it.
            return Ok(());
        }
        let members = self.members();
        let queried = members.len().min(QUERIES_PER_REFRESH_MAX);
        let each = self.options.timeout / u32::try_from(queried + 1).unwrap_or(u32::MAX);
        let mut last = CallFailure::ClusterDown.error("open", Effect::Read);
        let mut found = None;
        for _ in 0..queried {
            *next = next.wrapping_add(1);
            match timeout(each, self.fetch_slot_map(&members[*next % members.len()])).await {
                Ok(Ok(primaries)) => {
                    found = Some(primaries);
                    break;
                }
                Ok(Err(error)) if error.kind() == StoreErrorKind::Incompatible => return Err(error),
                Ok(Err(error)) => last = error,
                Err(_elapsed) => {}
            }
        }
        let changed = self.install(found.ok_or(last)?).map_err(|error| unreachable(&error))?;
        drop(next);
        // Detects slots that arrived without their records. Members without a connection are checked when connecting.
        let connected = changed.iter().filter(|member| member.is_connected());
        join_all(connected.map(|member| member.check(deadline))).await;
        Ok(())
    }

    /// The slot map of one member. Only a member that reports the cluster as up is believed: one that is partitioned away
    /// would keep naming the former primaries.
    async fn fetch_slot_map(&self, member: &Host) -> Result<Vec<Primary>, StoreError> {
        let cannot = |error: RedisError| match error.detail() {
            Some(detail) if detail.contains("cluster support disabled") => OpenError::NotCluster.into(),
            _ => unreachable(&error),
        };
        let client = self.address.client(member).map_err(cannot)?;
        let mut connection = client.get_multiplexed_async_connection().await.map_err(cannot)?;
        let mut command = redis::cmd("CLUSTER");
        let state: String = command.arg("INFO").query_async(&mut connection).await.map_err(cannot)?;
        let mut command = redis::cmd("CLUSTER");
        let slots: Value = command.arg("SLOTS").query_async(&mut connection).await.map_err(cannot)?;
        let primaries = slots::parse(&slots, member).filter(|primaries| !primaries.is_empty());
        match primaries {
            Some(primaries) if state.contains("cluster_state:ok") => Ok(primaries),
            _ => Err(CallFailure::ClusterDown.error("open", Effect::Read)),
        }
    }

    /// Installs a new slot map; returns the members whose slots have changed.
    fn install(&self, primaries: Vec<Primary>) -> Result<Vec<Arc<ServerConnection>>, RedisError> {
        let mut map = self.map.write();
        let mut connections = HashMap::new();
        let mut owners = vec![None; usize::from(SLOTS)];
        let mut changed = Vec::new();
        for Primary { host, ranges } in primaries {
            let member = match map.connections.remove(&host) {
                Some(member) => member,
                None => self.new_member(&host)?,
            };
            for (first, last) in &ranges {
                if let Some(slots) = owners.get_mut(usize::from(*first)..=usize::from(*last)) {
                    slots.fill(Some(member.clone()));
                }
            }
            if member.assign(SlotSet::Ranges(ranges)) {
                changed.push(member.clone());
            }
            connections.insert(host, member);
        }
        // A member that imports slots receives calls before it owns any.
        for (host, member) in map.connections.drain().filter(|(_, member)| member.is_connected()) {
            member.assign(SlotSet::none());
            connections.insert(host, member);
        }
        *map = SlotMap { version: map.version.wrapping_add(1), connections, owners };
        Ok(changed)
    }

    /// The member to which a slot has moved. A new member is checked before it receives calls.
    async fn moved_owner(
        &self,
        slot: u16,
        to: &Host,
        deadline: Deadline,
    ) -> Result<Arc<ServerConnection>, StoreError> {
        self.stale.notify_one();
        if !self.map.read().connections.contains_key(to) {
            self.refresh(deadline).await?;
        }
        let member = self.member(to).map_err(|error| unreachable(&error))?;
        if let Some(owner) = self.map.write().owners.get_mut(usize::from(slot)) {
            *owner = Some(member.clone());
        }
        Ok(member)
    }

    fn member(&self, host: &Host) -> Result<Arc<ServerConnection>, RedisError> {
        if let Some(member) = self.map.read().connections.get(host) {
            return Ok(member.clone());
        }
        let member = self.new_member(host)?;
        Ok(self.map.write().connections.entry(host.clone()).or_insert(member).clone())
    }

    fn new_member(&self, host: &Host) -> Result<Arc<ServerConnection>, RedisError> {
        let address = self.address.at(host)?;
        Ok(ServerConnection::new(self.options.clone(), address, self.marks.clone(), SlotSet::none()))
    }

    /// All known members: discovered ones first, then the seed nodes.
    fn members(&self) -> Vec<Host> {
        let mut members: Vec<Host> = self.map.read().connections.keys().cloned().collect();
        members.sort_unstable();
        members.extend(self.seeds.iter().filter(|seed| !members.contains(seed)).cloned().collect::<Vec<_>>());
        members
    }
}
