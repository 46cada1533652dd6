//! Wake-ups: whoever waits for a record is told by the server when it changes.
//!
//! One connection of its own listens, for all records of the store together. A record that somebody waits for is marked
//! in its row, and only changes of marked rows are told: telling holds up other commits of the database. News is a hint:
//! it may be lost with a connection, so everybody is woken when one breaks, and callers look from time to time as well.

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
use crate::link::Link;
use crate::tls::Tls;

/// How long a record stays marked for us after the last one who waited: whoever looked and waits again misses nothing.
const LINGER: Duration = Duration::from_secs(5);

/// How long to leave a server alone after it could not be reached.
const RECONNECT_AFTER: Duration = Duration::from_millis(500);

/// How long to leave it alone when its news does not arrive: that is a matter of how it is set up.
const DEAF_FOR: Duration = Duration::from_secs(60);

/// What is told when the server's news does not arrive.
const DEAF: &str = "what the server tells does not arrive, so whoever waits for a record looks from time to time; where a \
    pooler stands between, name the server's own address with listen=HOST:PORT";

/// Everybody who waits for a record through this store.
#[derive(Debug)]
pub(crate) struct Wake(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    records: Mutex<Records>,
    /// There is something to mark, the connection broke, or nobody is left to listen for.
    asked: Arc<Notify>,
    is_deaf: AtomicBool,
    setup: Setup,
}

#[derive(Clone)]
struct Setup {
    /// Weak, so that a listener that rests does not keep the connections of a store that is gone.
    link: Weak<Link>,
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
    news: Arc<Notify>,
    watchers: usize,
    is_marked: bool,
    /// Nobody has waited since the last round.
    is_deserted: bool,
}

/// One who waits.
struct Watcher {
    shared: Arc<Shared>,
    id: RecordId,
    news: Arc<Notify>,
}

impl Wake {
    /// None where nobody wants to be told.
    pub(crate) fn new(link: &Arc<Link>) -> Option<Self> {
        let mut config = link.options.listener()?;
        let limit = link.options.timeout;
        let each = link.options.connect_timeout();
        config.connect_timeout(each).tcp_user_timeout(limit).application_name("hapax wake-ups");
        let setup = Setup {
            link: Arc::downgrade(link),
            config,
            tls: link.tls.clone(),
            timeout: limit,
            row_wait: link.row_wait(),
            channel: link.sql.channel.clone(),
            mark: link.sql.watch.clone(),
        };
        let (records, asked) = (Mutex::default(), Arc::new(Notify::new()));
        Some(Self(Arc::new(Shared { records, asked, is_deaf: AtomicBool::new(false), setup })))
    }

    /// Ends when the record has changed, and once when it begins to be listened for.
    pub(crate) fn watch(&self, id: RecordId) -> BoxFuture<'static, ()> {
        let watcher = self.0.clone().join(id);
        Box::pin(async move { watcher.news.notified().await })
    }

    /// What somebody should look at.
    pub(crate) fn warning(&self) -> Option<&'static str> {
        self.0.is_deaf.load(Ordering::Relaxed).then_some(DEAF)
    }
}

impl Shared {
    fn join(self: Arc<Self>, id: RecordId) -> Watcher {
        let mut records = self.records.lock();
        if !records.has_listener {
            records.has_listener = true;
            tokio::spawn(listen(Arc::downgrade(&self), self.setup.clone(), self.asked.clone()));
        }
        let watched = records.by_id.entry(id).or_insert_with(|| Watched {
            news: Arc::new(Notify::new()),
            watchers: 0,
            is_marked: false,
            is_deserted: false,
        });
        watched.watchers += 1;
        watched.is_deserted = false;
        let news = watched.news.clone();
        if !watched.is_marked {
            self.asked.notify_one();
        }
        drop(records);
        Watcher { shared: self, id, news }
    }

    fn wake(&self, id: &RecordId) {
        if let Some(watched) = self.records.lock().by_id.get(id) {
            watched.news.notify_waiters();
            // For whoever has asked and does not listen yet.
            watched.news.notify_one();
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
        // What happened before is found by looking.
        self.wake(id);
    }

    /// Forgets the records for which nobody has waited since the last round.
    fn forget_deserted(&self) {
        self.records.lock().by_id.retain(|_, watched| {
            let is_gone = watched.is_deserted && watched.watchers == 0;
            watched.is_deserted = watched.watchers == 0;
            !is_gone
        });
    }

    /// The connection broke: nothing is heard, and everybody must look.
    fn cut(&self) {
        self.records.lock().by_id.retain(|_, watched| {
            watched.is_marked = false;
            watched.news.notify_waiters();
            watched.watchers > 0
        });
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.asked.notify_one();
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut records = self.shared.records.lock();
        let Some(watched) = records.by_id.get_mut(&self.id) else { return };
        watched.watchers -= 1;
        // While nothing can be marked there are no rounds that would forget it.
        if watched.watchers == 0 && !watched.is_marked {
            records.by_id.remove(&self.id);
        }
    }
}

/// Why listening ended.
enum Ended {
    /// The store is gone.
    Over,
    /// The connection broke, or was never made.
    Broken,
    /// It works, and what is told does not arrive.
    Deaf,
}

/// Listens for as long as the store lives.
async fn listen(shared: Weak<Shared>, setup: Setup, asked: Arc<Notify>) {
    loop {
        let ended = listen_once(&shared, &setup, &asked).await;
        let Some(here) = shared.upgrade() else { return };
        here.cut();
        here.is_deaf.store(matches!(ended, Ended::Deaf), Ordering::Relaxed);
        drop(here);
        tokio::time::sleep(match ended {
            Ended::Over => return,
            Ended::Broken => RECONNECT_AFTER,
            Ended::Deaf => DEAF_FOR,
        })
        .await;
    }
}

/// Listens on one connection until it breaks, or until nobody is left to listen for.
async fn listen_once(shared: &Weak<Shared>, setup: &Setup, asked: &Arc<Notify>) -> Ended {
    let connected = timeout(setup.timeout, setup.config.connect(setup.tls.clone())).await;
    let Ok(Ok((client, mut connection))) = connected else { return Ended::Broken };
    let hello = format!("{:?}", Nonce::random());
    let heard = Arc::new(Notify::new());
    let (listener, greeting) = (shared.clone(), (hello.clone(), heard.clone()));
    let asked_too = asked.clone();
    let driving = tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            let AsyncMessage::Notification(news) = message else { continue };
            if news.payload() == greeting.0 {
                greeting.1.notify_one();
            } else if let (Some(id), Some(here)) = (RecordId::parse(news.payload()), listener.upgrade()) {
                here.wake(&id);
            }
        }
        asked_too.notify_one();
    });
    let ended = hear(shared, setup, asked, &client, (&hello, &heard)).await;
    driving.abort();
    ended.unwrap_or(Ended::Broken)
}

/// Marks what is waited for, on a connection that hears.
async fn hear(
    shared: &Weak<Shared>,
    setup: &Setup,
    asked: &Notify,
    client: &Client,
    (hello, heard): (&str, &Notify),
) -> Result<Ended, tokio_postgres::Error> {
    let listen = format!("LISTEN \"{}\"", setup.channel);
    let Ok(listening) = timeout(setup.timeout, client.batch_execute(&listen)).await else {
        return Ok(Ended::Broken);
    };
    listening?;
    let Some(link) = setup.link.upgrade() else { return Ok(Ended::Over) };
    if greet(&link, hello).await.is_err() {
        return Ok(Ended::Broken);
    }
    drop(link);
    if timeout(setup.timeout, heard.notified()).await.is_err() {
        let _ = timeout(setup.timeout, client.batch_execute("UNLISTEN *")).await;
        return Ok(Ended::Deaf);
    }
    let mut rounds = interval(LINGER);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !client.is_closed() {
        let Some(here) = shared.upgrade() else { return Ok(Ended::Over) };
        here.is_deaf.store(false, Ordering::Relaxed);
        let unmarked = here.unmarked();
        drop(here);
        let Ok(marked) = timeout(setup.timeout, mark(shared, setup, client, &unmarked)).await else {
            return Ok(Ended::Broken);
        };
        marked?;
        tokio::select! {
            () = asked.notified() => {}
            _ = rounds.tick() => {
                let Some(here) = shared.upgrade() else { return Ok(Ended::Over) };
                here.forget_deserted();
            }
        }
    }
    Ok(Ended::Broken)
}

/// Says hello on the channel, as others tell their news: through another connection. Behind a pooler that hands out a
/// connection for a transaction only, the listener would hear what it says itself, and nothing else.
async fn greet(link: &Link, hello: &str) -> Result<(), StoreError> {
    let deadline = link.deadline();
    let lent = link.lend("watch", deadline).await?;
    let greeting = [(&link.sql.channel as _, Type::TEXT), (&hello as _, Type::TEXT)];
    let greeted = lent.client().query_typed("SELECT pg_notify($1, $2)", &greeting);
    let greeted = timeout_at(deadline, greeted).await;
    lent.end("watch", Effect::Read, greeted).map(drop)
}

/// Marks records. Those that somebody's open transaction holds are left for the next round.
async fn mark(
    shared: &Weak<Shared>,
    setup: &Setup,
    client: &Client,
    unmarked: &[RecordId],
) -> Result<(), tokio_postgres::Error> {
    // All together wait no longer than one statement may: they go one after another.
    let count = u32::try_from(unmarked.len()).unwrap_or(u32::MAX).max(1);
    let wait = wait_ms(setup.row_wait / count);
    // Each in a statement of its own: one for many rows would have to take them in order.
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

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setup").field("channel", &self.channel).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
