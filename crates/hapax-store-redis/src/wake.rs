//! Wake-ups: whoever waits for a record is told by the server when it changes.
//!
//! One connection of its own listens on the channels of the records that somebody waits for. News is a hint: it may be
//! lost with a connection, so everybody is woken when one breaks, and callers look from time to time as well.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt;
use hapax_core::BoxFuture;
use parking_lot::Mutex;
use redis::RedisError;
use redis::aio::{PubSubSink, PubSubStream};
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::way::Way;

/// How long a channel is listened to after the last one who waited: whoever looked and waits again misses nothing.
const LINGER: Duration = Duration::from_secs(5);

/// How long to leave a server alone after it could not be reached.
const RECONNECT_AFTER: Duration = Duration::from_millis(500);

/// Everybody who waits for a record through this store.
#[derive(Debug)]
pub(crate) struct Wake {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    way: Arc<Way>,
    channels: Mutex<Channels>,
    /// There is something to listen to, or nobody left to listen for.
    asked: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Channels {
    by_name: HashMap<String, Channel>,
    has_listener: bool,
}

#[derive(Debug, Default)]
struct Channel {
    news: Arc<Notify>,
    watchers: usize,
    is_subscribed: bool,
    /// Nobody has waited since the last round.
    is_deserted: bool,
}

/// One who waits.
struct Watcher {
    shared: Arc<Shared>,
    name: String,
    news: Arc<Notify>,
}

impl Wake {
    pub(crate) fn new(way: Arc<Way>) -> Self {
        let (channels, asked) = (Mutex::default(), Arc::new(Notify::new()));
        Self { shared: Arc::new(Shared { way, channels, asked }) }
    }

    /// Ends when something was said on the channel, and once when it begins to be listened to.
    pub(crate) fn watch(&self, name: String) -> BoxFuture<'static, ()> {
        let watcher = self.shared.clone().join(name);
        Box::pin(async move { watcher.news.notified().await })
    }
}

impl Shared {
    fn join(self: Arc<Self>, name: String) -> Watcher {
        let mut channels = self.channels.lock();
        if !channels.has_listener {
            channels.has_listener = true;
            tokio::spawn(listen(Arc::downgrade(&self), self.asked.clone()));
        }
        let channel = channels.by_name.entry(name.clone()).or_default();
        channel.watchers += 1;
        channel.is_deserted = false;
        let news = channel.news.clone();
        if !channel.is_subscribed {
            self.asked.notify_one();
        }
        drop(channels);
        Watcher { shared: self, name, news }
    }

    fn wake(&self, name: &str) {
        if let Some(channel) = self.channels.lock().by_name.get(name) {
            channel.news.notify_waiters();
            // For whoever has asked and does not listen yet.
            channel.news.notify_one();
        }
    }

    /// The channels that must be listened to and are not yet.
    fn missing(&self) -> Vec<String> {
        let channels = self.channels.lock();
        let missing = channels.by_name.iter().filter(|(_, channel)| !channel.is_subscribed);
        missing.map(|(name, _)| name.clone()).collect()
    }

    fn subscribed(&self, name: &str) {
        // Also when everybody has gone meanwhile: a later round takes it back.
        self.channels.lock().by_name.entry(name.to_owned()).or_default().is_subscribed = true;
        // What was said before there was anybody to hear it is found by looking.
        self.wake(name);
    }

    /// Forgets the channels for which nobody has waited since the last round, and names them.
    fn deserted(&self) -> Vec<String> {
        let mut gone = Vec::new();
        self.channels.lock().by_name.retain(|name, channel| {
            let is_gone = channel.is_deserted && channel.watchers == 0;
            channel.is_deserted = channel.watchers == 0;
            if is_gone {
                gone.push(name.clone());
            }
            !is_gone
        });
        gone
    }

    /// The connection broke: nothing is listened to, and everybody must look.
    fn cut(&self) {
        self.channels.lock().by_name.retain(|_, channel| {
            channel.is_subscribed = false;
            channel.news.notify_waiters();
            channel.watchers > 0
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
        let mut channels = self.shared.channels.lock();
        let Some(channel) = channels.by_name.get_mut(&self.name) else { return };
        channel.watchers -= 1;
        // While nothing can be subscribed to there are no rounds that would forget it.
        if channel.watchers == 0 && !channel.is_subscribed {
            channels.by_name.remove(&self.name);
        }
    }
}

/// Listens for as long as the store lives.
async fn listen(shared: Weak<Shared>, asked: Arc<Notify>) {
    loop {
        let Some(here) = shared.upgrade() else { return };
        let way = here.way.clone();
        drop(here);
        let limit = way.options.timeout;
        // It must not keep the store alive while it listens.
        let connecting = async move { way.listening_post().await?.get_async_pubsub().await };
        if let Ok(Ok(pubsub)) = timeout(limit, connecting).await {
            let (sink, stream) = pubsub.split();
            let ended = listen_on(&shared, &asked, sink, stream, limit).await;
            if ended.is_ok() {
                return;
            }
        }
        let Some(here) = shared.upgrade() else { return };
        here.cut();
        drop(here);
        tokio::time::sleep(RECONNECT_AFTER).await;
    }
}

/// Listens on one connection until it breaks, or until nobody is left to listen for.
async fn listen_on(
    shared: &Weak<Shared>,
    asked: &Notify,
    mut sink: PubSubSink,
    mut stream: PubSubStream,
    limit: Duration,
) -> Result<(), RedisError> {
    let mut rounds = interval(LINGER);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let Some(here) = shared.upgrade() else { return Ok(()) };
        for name in here.missing() {
            answered(timeout(limit, sink.subscribe(&name)).await)?;
            here.subscribed(&name);
        }
        drop(here);
        tokio::select! {
            message = stream.next() => {
                let Some(message) = message else { return answered(Ok(Err(closed()))) };
                let Some(here) = shared.upgrade() else { return Ok(()) };
                here.wake(message.get_channel_name());
            }
            () = asked.notified() => {}
            _ = rounds.tick() => {
                let Some(here) = shared.upgrade() else { return Ok(()) };
                for name in here.deserted() {
                    answered(timeout(limit, sink.unsubscribe(&name)).await)?;
                }
            }
        }
    }
}

fn answered(answer: Result<Result<(), RedisError>, tokio::time::error::Elapsed>) -> Result<(), RedisError> {
    answer.unwrap_or_else(|_elapsed| Err(closed()))
}

fn closed() -> RedisError {
    std::io::Error::from(std::io::ErrorKind::ConnectionAborted).into()
}

#[cfg(test)]
mod tests;
