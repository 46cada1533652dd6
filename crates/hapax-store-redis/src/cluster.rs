//! A cluster: which member has which slot, found by asking the members, corrected by what they refer to.
//!
//! A call goes to the member that has its key's slot, and follows that member's word when the slot has moved or is just
//! moving: then nothing was done, so it may be sent again. That is the only thing that is sent twice. When a member fails,
//! the call fails with it, and the members are asked anew for the next one.

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
use crate::error::{Effect, OpenError, Refusal, unreachable};
use crate::link::{Call, Deadline, Failed, Link, Right};
use crate::look::Shown;
use crate::mark::Marks;
use crate::slots::{self, Primary, SLOTS, Territory, slot_of};
use crate::way::Owner;

/// How many members are asked in one search, so that one that hangs leaves time for others.
const ASKED_MAX: usize = 8;

/// How many times a call is sent on at once. More often, two members do not agree yet.
const REDIRECTIONS_AT_ONCE: u32 = 2;

/// How long two members that do not agree are left alone.
const DISAGREEMENT: Duration = Duration::from_millis(10);

/// A cluster.
#[derive(Debug)]
pub(crate) struct Cluster {
    options: Arc<Options>,
    marks: Arc<Marks>,
    /// How to talk to any member.
    address: Address,
    /// Those who were named.
    named: Vec<Host>,
    map: RwLock<Map>,
    /// Whom to ask next; held by whoever asks.
    searching: tokio::sync::Mutex<usize>,
    doubted: Arc<Notify>,
}

/// Who has which slot.
#[derive(Debug, Default)]
struct Map {
    /// Grows with every search.
    version: u64,
    links: HashMap<Host, Arc<Link>>,
    /// The owner of each slot; empty until the first search.
    owners: Vec<Option<Arc<Link>>>,
}

impl Cluster {
    pub(crate) fn new(options: Arc<Options>, marks: Arc<Marks>, named: &[Host]) -> Result<Self, StoreError> {
        if options.prefix.contains('{') {
            let why = "a prefix with a brace would keep all records of a cluster in one slot".to_owned();
            return Err(OpenError::Url { why }.into());
        }
        Ok(Self {
            address: Address::new(&options)?,
            options,
            marks,
            named: named.to_vec(),
            map: RwLock::default(),
            searching: tokio::sync::Mutex::new(0),
            doubted: Arc::new(Notify::new()),
        })
    }

    /// Rings when somebody had reason to doubt who has which slot.
    pub(crate) fn doubted(&self) -> Arc<Notify> {
        self.doubted.clone()
    }

    /// Sends a call to the owner of its key, or to the member that this one names, and returns the answer and who gave it.
    pub(crate) async fn answer(
        &self,
        call: &Call<'_>,
        owner: Owner,
    ) -> Result<(Value, Arc<Link>), StoreError> {
        let Owner { mut link, connected } = owner;
        let mut answered = link.answer_on(&connected, call, Right::Owner).await;
        let mut redirections = 0;
        loop {
            let failed = match answered {
                Ok(answer) => return Ok((answer, link)),
                Err(failed) => failed,
            };
            let Failed::Redirected { to, right, error } = failed else {
                let error = failed.error();
                self.doubt_by(&error);
                return Err(error);
            };
            redirections += 1;
            if redirections > REDIRECTIONS_AT_ONCE {
                if tokio::time::Instant::now() + DISAGREEMENT >= call.deadline {
                    return Err(error);
                }
                tokio::time::sleep(DISAGREEMENT).await;
            }
            link = match right {
                Right::Sent => self.link(&to).map_err(|error| unreachable(&error))?,
                Right::Owner => self.moved(slot_of(call.key.as_bytes()), &to, call.deadline).await?,
            };
            answered = link.answer(call, right).await;
        }
    }

    /// The member that has a key's slot, and the connection to it.
    pub(crate) async fn owner(
        &self,
        key: &str,
        op: &'static str,
        deadline: Deadline,
    ) -> Result<Owner, StoreError> {
        let link = self.owner_of(slot_of(key.as_bytes()), op, deadline).await?;
        let connected = link.connected(op, deadline).await.inspect_err(|error| self.doubt_by(error))?;
        Ok(Owner { link, connected })
    }

    /// Asks for the members anew after a member that cannot be reached, or from which no answer came.
    fn doubt_by(&self, error: &StoreError) {
        if matches!(error.kind(), StoreErrorKind::Unavailable | StoreErrorKind::Unknown) {
            self.doubted.notify_one();
        }
    }

    async fn owner_of(
        &self,
        slot: u16,
        op: &'static str,
        deadline: Deadline,
    ) -> Result<Arc<Link>, StoreError> {
        let slot = usize::from(slot);
        let find = || self.map.read().owners.get(slot).cloned().flatten();
        if let Some(owner) = find() {
            return Ok(owner);
        }
        self.search(deadline).await?;
        find().ok_or_else(|| Refusal::NoOwner.error(op, Effect::Read))
    }

    /// All members that have slots.
    pub(crate) fn owners(&self) -> Vec<Arc<Link>> {
        let map = self.map.read();
        map.links.values().filter(|link| !link.territory().is_empty()).cloned().collect()
    }

    /// Some member, another one each time.
    pub(crate) async fn any(&self) -> Result<Client, RedisError> {
        let mut next = self.searching.lock().await;
        let members = self.members();
        *next = next.wrapping_add(1);
        let host = &members[*next % members.len()];
        self.address.client(host)
    }

    /// Looks at all members that have slots.
    pub(crate) async fn check(&self, deadline: Deadline) {
        let owners = self.owners();
        let checked = join_all(owners.iter().map(|link| link.check(deadline))).await;
        if checked.iter().any(|checked| !matches!(checked, Ok(Shown::Whole))) {
            self.doubted.notify_one();
        }
    }

    /// Asks who has which slot, and looks at the members for which that is news.
    pub(crate) async fn search(&self, deadline: Deadline) -> Result<(), StoreError> {
        // Others may be asking already, and whoever waits for them has a deadline of its own.
        let searched = timeout_at(deadline, self.search_in_turn(deadline)).await;
        searched.unwrap_or_else(|_| Err(Refusal::TimedOut.error("open", Effect::Read)))
    }

    async fn search_in_turn(&self, deadline: Deadline) -> Result<(), StoreError> {
        let seen = self.map.read().version;
        let mut next = self.searching.lock().await;
        if self.map.read().version != seen {
            // Somebody has just asked.
            return Ok(());
        }
        let members = self.members();
        let asked = members.len().min(ASKED_MAX);
        let each = self.options.timeout / u32::try_from(asked + 1).unwrap_or(u32::MAX);
        let mut last = Refusal::ClusterDown.error("open", Effect::Read);
        let mut found = None;
        for _ in 0..asked {
            *next = next.wrapping_add(1);
            match timeout(each, self.ask(&members[*next % members.len()])).await {
                Ok(Ok(primaries)) => {
                    found = Some(primaries);
                    break;
                }
                Ok(Err(error)) if error.kind() == StoreErrorKind::Incompatible => return Err(error),
                Ok(Err(error)) => last = error,
                Err(_elapsed) => {}
            }
        }
        let changed = self.redraw(found.ok_or(last)?).map_err(|error| unreachable(&error))?;
        drop(next);
        // Slots that came without their records are noticed now. Other members are looked at when they are connected.
        let connected = changed.iter().filter(|link| link.is_connected());
        join_all(connected.map(|link| link.check(deadline))).await;
        Ok(())
    }

    /// What one member says. Only members that think the cluster is up are believed: one that was cut off would go on
    /// naming those who were primaries before.
    async fn ask(&self, member: &Host) -> Result<Vec<Primary>, StoreError> {
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
            _ => Err(Refusal::ClusterDown.error("open", Effect::Read)),
        }
    }

    /// Takes a new map into use, and names the members whose slots are others now.
    fn redraw(&self, primaries: Vec<Primary>) -> Result<Vec<Arc<Link>>, RedisError> {
        let mut map = self.map.write();
        let mut links = HashMap::new();
        let mut owners = vec![None; usize::from(SLOTS)];
        let mut changed = Vec::new();
        for Primary { host, ranges } in primaries {
            let link = match map.links.remove(&host) {
                Some(link) => link,
                None => self.new_link(&host)?,
            };
            for (first, last) in &ranges {
                if let Some(slots) = owners.get_mut(usize::from(*first)..=usize::from(*last)) {
                    slots.fill(Some(link.clone()));
                }
            }
            if link.assign(Territory::Slots(ranges)) {
                changed.push(link.clone());
            }
            links.insert(host, link);
        }
        // A member to which slots are on their way is asked before it has any.
        for (host, link) in map.links.drain().filter(|(_, link)| link.is_connected()) {
            link.assign(Territory::none());
            links.insert(host, link);
        }
        *map = Map { version: map.version.wrapping_add(1), links, owners };
        Ok(changed)
    }

    /// The member to which a slot has moved. One that is new here is looked at before it is asked for anything.
    async fn moved(&self, slot: u16, to: &Host, deadline: Deadline) -> Result<Arc<Link>, StoreError> {
        self.doubted.notify_one();
        if !self.map.read().links.contains_key(to) {
            self.search(deadline).await?;
        }
        let link = self.link(to).map_err(|error| unreachable(&error))?;
        if let Some(owner) = self.map.write().owners.get_mut(usize::from(slot)) {
            *owner = Some(link.clone());
        }
        Ok(link)
    }

    fn link(&self, host: &Host) -> Result<Arc<Link>, RedisError> {
        if let Some(link) = self.map.read().links.get(host) {
            return Ok(link.clone());
        }
        let link = self.new_link(host)?;
        Ok(self.map.write().links.entry(host.clone()).or_insert(link).clone())
    }

    fn new_link(&self, host: &Host) -> Result<Arc<Link>, RedisError> {
        let address = self.address.at(host)?;
        Ok(Link::new(self.options.clone(), address, self.marks.clone(), Territory::none()))
    }

    /// Everybody who may be asked: those who were found, then those who were named.
    fn members(&self) -> Vec<Host> {
        let mut members: Vec<Host> = self.map.read().links.keys().cloned().collect();
        members.sort_unstable();
        members
            .extend(self.named.iter().filter(|named| !members.contains(named)).cloned().collect::<Vec<_>>());
        members
    }
}
