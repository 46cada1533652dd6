//! Notifications: the server notifies waiting callers of changes.
//!
//! One dedicated connection listens for all records of the store. An awaited record is marked in its row, and only changes
//! of marked rows send a notification, because `NOTIFY` serializes the commits of the database. A notification is a hint:
//! it may be lost with a connection, so all watchers are woken when one breaks, and callers also poll.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::try_join_all;
use hapax_core::{BoxFuture, Nonce, RecordId, StoreError};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval, timeout, timeout_at};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client, Config};

use crate::claim::wait_ms;
use crate::error::Effect;
use crate::pool::ConnectionPool;
use crate::tls::Tls;

/// How long a record stays watched after its last watcher: a caller that polls and waits again misses nothing.
const LINGER: Duration = Duration::from_secs(5);

/// Back-off after a failed connect.
const RECONNECT_AFTER: Duration = Duration::from_millis(500);

/// Back-off when notifications do not arrive: that is a matter of configuration.
const RETRY_SILENT_AFTER: Duration = Duration::from_secs(60);

/// The warning when notifications do not arrive.
const SILENT: &str = "the server's notifications do not arrive, so callers that wait for a record poll; if a pooler stands in \
    between, name the server's own address with listen=HOST:PORT";

/// All watchers of records in this store.
#[derive(Debug)]
pub(crate) struct Notifications(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    records: Mutex<Records>,
    /// Notified when there is a record to mark, when the connection breaks, and when the store is dropped.
    changed: Arc<Notify>,
    is_silent: AtomicBool,
    setup: ListenerConfig,
}

#[derive(Clone)]
struct ListenerConfig {
    /// Weak, so that a listener that backs off does not keep the connections of a dropped store.
    pool: Weak<ConnectionPool>,
    config: Config,
    tls: Tls,
    timeout: Duration,
    row_wait: Duration,
    channel: String,
    mark: String,
}

#[derive(Debug, Default)]
struct Records {
    by_id: HashMap<RecordId, Watched>,
    has_listener: bool,
}

#[derive(Debug)]
struct Watched {
    notify: Arc<Notify>,
    watchers: usize,
    is_marked: bool,
    /// Had no watchers at the last round.
    is_unwatched: bool,
}

/// One waiting caller.
struct Watcher {
    shared: Arc<Shared>,
    id: RecordId,
    notify: Arc<Notify>,
}

impl Notifications {
    /// None without a listener.
    pub(crate) fn new(pool: &Arc<ConnectionPool>) -> Option<Self> {
        let mut config = pool.options.listener()?;
        let limit = pool.options.timeout;
        let each = pool.options.connect_timeout();
        config.connect_timeout(each).tcp_user_timeout(limit).application_name("hapax wake-ups");
        let setup = ListenerConfig {
            pool: Arc::downgrade(pool),
            config,
            tls: pool.tls.clone(),
            timeout: limit,
            row_wait: pool.row_wait(),
            channel: pool.sql.channel.clone(),
            mark: pool.sql.watch.clone(),
        };
        let (records, changed) = (Mutex::default(), Arc::new(Notify::new()));
        Some(Self(Arc::new(Shared { records, changed, is_silent: AtomicBool::new(false), setup })))
    }

    /// Completes when the record has changed, and once when its row has been marked.
    pub(crate) fn watch(&self, id: RecordId) -> BoxFuture<'static, ()> {
        let watcher = self.0.clone().join(id);
        Box::pin(async move { watcher.notify.notified().await })
    }

    /// A warning for operators.
    pub(crate) fn warning(&self) -> Option<&'static str> {
        self.0.is_silent.load(Ordering::Relaxed).then_some(SILENT)
    }
}

impl Shared {
    fn join(self: Arc<Self>, id: RecordId) -> Watcher {
        let mut records = self.records.lock();
        if !records.has_listener {
            records.has_listener = true;
            tokio::spawn(listen(Arc::downgrade(&self), self.setup.clone(), self.changed.clone()));
        }
        let watched = records.by_id.entry(id).or_insert_with(|| Watched {
            notify: Arc::new(Notify::new()),
            watchers: 0,
            is_marked: false,
            is_unwatched: false,
        });
        watched.watchers += 1;
        watched.is_unwatched = false;
        let notify = watched.notify.clone();
        if !watched.is_marked {
            self.changed.notify_one();
        }
        drop(records);
        Watcher { shared: self, id, notify }
    }

    fn notify(&self, id: &RecordId) {
        if let Some(watched) = self.records.lock().by_id.get(id) {
            watched.notify.notify_waiters();
            // For a watcher that does not wait yet.
            watched.notify.notify_one();
        }
    }

    fn unmarked(&self) -> Vec<RecordId> {
        let records = self.records.lock();
        records.by_id.iter().filter(|(_, watched)| !watched.is_marked).map(|(id, _)| *id).collect()
    }

    fn marked(&self, id: &RecordId) {
        if let Some(watched) = self.records.lock().by_id.get_mut(id) {
            watched.is_marked = true;
        }
        // Changes from before the mark are found by polling.
        self.notify(id);
    }

    /// Removes the records without watchers since the last round.
    fn forget_unwatched(&self) {
        self.records.lock().by_id.retain(|_, watched| {
            let is_gone = watched.is_unwatched && watched.watchers == 0;
            watched.is_unwatched = watched.watchers == 0;
            !is_gone
        });
    }

    /// The connection broke: no notifications arrive, and every watcher must poll.
    fn disconnected(&self) {
        self.records.lock().by_id.retain(|_, watched| {
            watched.is_marked = false;
            watched.notify.notify_waiters();
            watched.watchers > 0
        });
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.changed.notify_one();
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut records = self.shared.records.lock();
        let Some(watched) = records.by_id.get_mut(&self.id) else { return };
        watched.watchers -= 1;
        // Without a connection there are no rounds that would remove it.
        if watched.watchers == 0 && !watched.is_marked {
            records.by_id.remove(&self.id);
        }
    }
}

/// Why listening ended.
enum ListenEnd {
    /// The store was dropped.
    StoreDropped,
    /// The connection broke, or could not be made.
    Disconnected,
    /// The connection works, and notifications do not arrive.
    Silent,
}

/// Listens until the store is dropped.
async fn listen(shared: Weak<Shared>, setup: ListenerConfig, changed: Arc<Notify>) {
    loop {
        let ended = listen_once(&shared, &setup, &changed).await;
        let Some(here) = shared.upgrade() else { return };
        here.disconnected();
        here.is_silent.store(matches!(ended, ListenEnd::Silent), Ordering::Relaxed);
        drop(here);
        tokio::time::sleep(match ended {
            ListenEnd::StoreDropped => return,
            ListenEnd::Disconnected => RECONNECT_AFTER,
            ListenEnd::Silent => RETRY_SILENT_AFTER,
        })
        .await;
    }
}

/// Listens on one connection until it breaks or the store is dropped.
async fn listen_once(shared: &Weak<Shared>, setup: &ListenerConfig, changed: &Arc<Notify>) -> ListenEnd {
    let connected = timeout(setup.timeout, setup.config.connect(setup.tls.clone())).await;
    let Ok(Ok((client, mut connection))) = connected else { return ListenEnd::Disconnected };
    let probe = format!("{:?}", Nonce::random());
    let received = Arc::new(Notify::new());
    let (listener, expected) = (shared.clone(), (probe.clone(), received.clone()));
    let changed_on_close = changed.clone();
    let driving = tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            let AsyncMessage::Notification(notification) = message else { continue };
            if notification.payload() == expected.0 {
                expected.1.notify_one();
            } else if let (Some(id), Some(here)) =
                (RecordId::parse(notification.payload()), listener.upgrade())
            {
                here.notify(&id);
            }
        }
        changed_on_close.notify_one();
    });
    let ended = listen_on(shared, setup, changed, &client, (&probe, &received)).await;
    driving.abort();
    ended.unwrap_or(ListenEnd::Disconnected)
}

/// Marks awaited records, once notifications are known to arrive.
async fn listen_on(
    shared: &Weak<Shared>,
    setup: &ListenerConfig,
    changed: &Notify,
    client: &Client,
    (probe, received): (&str, &Notify),
) -> Result<ListenEnd, tokio_postgres::Error> {
    let listen = format!("LISTEN \"{}\"", setup.channel);
    let Ok(listening) = timeout(setup.timeout, client.batch_execute(&listen)).await else {
        return Ok(ListenEnd::Disconnected);
    };
    listening?;
    let Some(pool) = setup.pool.upgrade() else { return Ok(ListenEnd::StoreDropped) };
    if send_probe(&pool, probe).await.is_err() {
        return Ok(ListenEnd::Disconnected);
    }
    drop(pool);
    if timeout(setup.timeout, received.notified()).await.is_err() {
        let _ = timeout(setup.timeout, client.batch_execute("UNLISTEN *")).await;
        return Ok(ListenEnd::Silent);
    }
    let mut rounds = interval(LINGER);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !client.is_closed() {
        let Some(here) = shared.upgrade() else { return Ok(ListenEnd::StoreDropped) };
        here.is_silent.store(false, Ordering::Relaxed);
        let unmarked = here.unmarked();
        drop(here);
        let Ok(marked) = timeout(setup.timeout, mark(shared, setup, client, &unmarked)).await else {
            return Ok(ListenEnd::Disconnected);
        };
        marked?;
        tokio::select! {
            () = changed.notified() => {}
            _ = rounds.tick() => {
                let Some(here) = shared.upgrade() else { return Ok(ListenEnd::StoreDropped) };
                here.forget_unwatched();
            }
        }
    }
    Ok(ListenEnd::Disconnected)
}

/// Sends a test notification through another connection, as the store's writes do. Behind a pooler in transaction mode the
/// listener would receive only notifications that it sends itself.
async fn send_probe(pool: &ConnectionPool, probe: &str) -> Result<(), StoreError> {
    let deadline = pool.deadline();
    let connection = pool.acquire("watch", deadline).await?;
    let expected = [(&pool.sql.channel as _, Type::TEXT), (&probe as _, Type::TEXT)];
    let sent = connection.client().query_typed("SELECT pg_notify($1, $2)", &expected);
    let sent = timeout_at(deadline, sent).await;
    connection.end("watch", Effect::Read, sent).map(drop)
}

/// Marks records. Rows locked by another transaction are left for the next round.
async fn mark(
    shared: &Weak<Shared>,
    setup: &ListenerConfig,
    client: &Client,
    unmarked: &[RecordId],
) -> Result<(), tokio_postgres::Error> {
    // The statements run one after another; together they must not wait longer than one may.
    let count = u32::try_from(unmarked.len()).unwrap_or(u32::MAX).max(1);
    let wait = wait_ms(setup.row_wait / count);
    // One statement per record: a multi-row statement would have to lock the rows in order.
    let marking = unmarked.iter().map(async |id| {
        let parameters = [(&id.as_bytes().as_slice() as _, Type::BYTEA), (&wait as _, Type::TEXT)];
        match client.execute_typed(&setup.mark, &parameters).await {
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => return Ok(()),
            answer => drop(answer?),
        }
        if let Some(here) = shared.upgrade() {
            here.marked(id);
        }
        Ok(())
    });
    try_join_all(marking).await.map(drop)
}

impl std::fmt::Debug for ListenerConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ListenerConfig").field("channel", &self.channel).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
