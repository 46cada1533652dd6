//! Notifications: the server publishes changes of records to waiting callers.
//!
//! One dedicated connection subscribes to the channels of the awaited records. A message is a hint: it may be lost with a
//! connection, so all watchers are woken when one breaks, and callers also poll.

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

use crate::routing::Router;

/// How long a subscription outlives its last watcher: a caller that polls and waits again misses nothing.
const LINGER: Duration = Duration::from_secs(5);

/// Back-off after a failed connect.
const RECONNECT_AFTER: Duration = Duration::from_millis(500);

/// All watchers of records in this store.
#[derive(Debug)]
pub(crate) struct Notifications {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    router: Arc<Router>,
    channels: Mutex<Channels>,
    /// Notified when there is a channel to subscribe to, and when the store is dropped.
    changed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Channels {
    by_name: HashMap<String, Channel>,
    has_listener: bool,
}

#[derive(Debug, Default)]
struct Channel {
    notify: Arc<Notify>,
    watchers: usize,
    is_subscribed: bool,
    /// Had no watchers at the last round.
    is_unwatched: bool,
}

/// One waiting caller.
struct Watcher {
    shared: Arc<Shared>,
    name: String,
    notify: Arc<Notify>,
}

impl Notifications {
    pub(crate) fn new(router: Arc<Router>) -> Self {
        let (channels, changed) = (Mutex::default(), Arc::new(Notify::new()));
        Self { shared: Arc::new(Shared { router, channels, changed }) }
    }

    /// Completes on a message on the channel, and once when the subscription is established.
    pub(crate) fn watch(&self, name: String) -> BoxFuture<'static, ()> {
        let watcher = self.shared.clone().join(name);
        Box::pin(async move { watcher.notify.notified().await })
    }
}

impl Shared {
    fn join(self: Arc<Self>, name: String) -> Watcher {
        let mut channels = self.channels.lock();
        if !channels.has_listener {
            channels.has_listener = true;
            tokio::spawn(listen(Arc::downgrade(&self), self.changed.clone()));
        }
        let channel = channels.by_name.entry(name.clone()).or_default();
        channel.watchers += 1;
        channel.is_unwatched = false;
        let notify = channel.notify.clone();
        if !channel.is_subscribed {
            self.changed.notify_one();
        }
        drop(channels);
        Watcher { shared: self, name, notify }
    }

    fn notify(&self, name: &str) {
        if let Some(channel) = self.channels.lock().by_name.get(name) {
            channel.notify.notify_waiters();
            // For a watcher that does not wait yet.
            channel.notify.notify_one();
        }
    }

    /// The channels without a subscription.
    fn missing(&self) -> Vec<String> {
        let channels = self.channels.lock();
        let missing = channels.by_name.iter().filter(|(_, channel)| !channel.is_subscribed);
        missing.map(|(name, _)| name.clone()).collect()
    }

    fn subscribed(&self, name: &str) {
        // Even if all watchers have gone meanwhile: a later round unsubscribes.
        self.channels.lock().by_name.entry(name.to_owned()).or_default().is_subscribed = true;
        // Messages from before the subscription are found by polling.
        self.notify(name);
    }

    /// Removes the channels without watchers since the last round, and returns their names.
    fn unwatched(&self) -> Vec<String> {
        let mut gone = Vec::new();
        self.channels.lock().by_name.retain(|name, channel| {
            let is_gone = channel.is_unwatched && channel.watchers == 0;
            channel.is_unwatched = channel.watchers == 0;
            if is_gone {
                gone.push(name.clone());
            }
            !is_gone
        });
        gone
    }

    /// The connection broke: no channel is subscribed, and every watcher must poll.
    fn disconnected(&self) {
        self.channels.lock().by_name.retain(|_, channel| {
            channel.is_subscribed = false;
            channel.notify.notify_waiters();
            channel.watchers > 0
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
        let mut channels = self.shared.channels.lock();
        let Some(channel) = channels.by_name.get_mut(&self.name) else { return };
        channel.watchers -= 1;
        // Without a connection there are no rounds that would remove it.
        if channel.watchers == 0 && !channel.is_subscribed {
            channels.by_name.remove(&self.name);
        }
    }
}

/// Listens until the store is dropped.
async fn listen(shared: Weak<Shared>, changed: Arc<Notify>) {
    loop {
        let Some(here) = shared.upgrade() else { return };
        let router = here.router.clone();
        drop(here);
        let limit = router.options.timeout;
        // This future must not keep the store alive.
        let connecting = async move { router.pubsub_client().await?.get_async_pubsub().await };
        if let Ok(Ok(pubsub)) = timeout(limit, connecting).await {
            let (sink, stream) = pubsub.split();
            let ended = listen_on(&shared, &changed, sink, stream, limit).await;
            if ended.is_ok() {
                return;
            }
        }
        let Some(here) = shared.upgrade() else { return };
        here.disconnected();
        drop(here);
        tokio::time::sleep(RECONNECT_AFTER).await;
    }
}

/// Listens on one connection until it breaks or the store is dropped.
async fn listen_on(
    shared: &Weak<Shared>,
    changed: &Notify,
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
                here.notify(message.get_channel_name());
            }
            () = changed.notified() => {}
            _ = rounds.tick() => {
                let Some(here) = shared.upgrade() else { return Ok(()) };
                for name in here.unwatched() {
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
