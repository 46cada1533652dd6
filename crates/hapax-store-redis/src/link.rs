//! The way to the server: one connection that all calls share, made anew when it breaks, looked over each time.
//!
//! Nothing is sent twice from here: a call whose answer is lost is [`Unknown`](hapax_core::StoreErrorKind::Unknown), and
//! whoever made it sends it again with its nonce. Every call ends within the configured time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use hapax_core::{StoreError, StoreErrorKind, Timestamp};
use parking_lot::RwLock;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, FromRedisValue, RedisError, ToRedisArgs, Value};
use tokio::time::timeout_at;

use crate::address::Address;
use crate::clock::ServerTime;
use crate::config::{Amnesia, Making, Options};
use crate::error::{Effect, OpenError, Refusal, ends_connection, judge};
use crate::mark::{Mark, Memory, Seen};
use crate::replicas::Replicas;
use crate::script::{Dialect, Script, Scripts};
use crate::server::Server;

/// A server that was looked over, and a connection to it.
#[derive(Debug)]
pub(crate) struct Connected {
    connection: MultiplexedConnection,
    server: Server,
}

/// The way to one server.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) options: Options,
    pub(crate) address: Address,
    pub(crate) time: ServerTime,
    current: RwLock<Option<Arc<Connected>>>,
    connecting: tokio::sync::Mutex<()>,
    replicas: Option<Replicas>,
    mark: Mark,
    has_lost_records: AtomicBool,
}

/// When a call must have ended.
pub(crate) type Deadline = tokio::time::Instant;

/// One call of a script.
pub(crate) struct Call<'a, A> {
    pub(crate) op: &'static str,
    pub(crate) deadline: Deadline,
    pub(crate) effect: Effect,
    pub(crate) script: fn(&Scripts) -> &Script,
    pub(crate) key: &'a str,
    pub(crate) arguments: &'a [A],
}

impl Link {
    pub(crate) fn new(options: Options) -> Result<Arc<Self>, StoreError> {
        let address = Address::new(&options)?;
        Ok(Arc::new(Self {
            replicas: Replicas::new(options.replicas),
            options,
            address,
            time: ServerTime::new(),
            current: RwLock::new(None),
            connecting: tokio::sync::Mutex::new(()),
            mark: Mark::default(),
            has_lost_records: AtomicBool::new(false),
        }))
    }

    /// The dialect of the server that is connected now.
    pub(crate) async fn dialect(&self, op: &'static str, deadline: Deadline) -> Result<Dialect, StoreError> {
        Ok(self.connected(op, deadline).await?.server.dialect)
    }

    /// What the server is, looked at now.
    pub(crate) async fn look(&self) -> Result<Server, StoreError> {
        let deadline = self.deadline();
        let connected = self.connected("health", deadline).await?;
        let mut connection = connected.connection.clone();
        let looked = timeout_at(deadline, self.look_over(&mut connection)).await;
        looked.unwrap_or_else(|_| Err(Refusal::TimedOut.error("health", Effect::Read))).inspect_err(|error| {
            if error.kind() == StoreErrorKind::Unavailable {
                self.forget(&connected);
            }
        })
    }

    /// Calls a script.
    pub(crate) async fn call<A: ToRedisArgs, T: FromRedisValue>(
        &self,
        call: Call<'_, A>,
    ) -> Result<T, StoreError> {
        let deadline = call.deadline;
        let connected = self.connected(call.op, deadline).await?;
        let script = (call.script)(connected.server.dialect.scripts());
        let command = script.by_digest(call.key, call.arguments);
        match self.send(&connected, call.op, call.effect, deadline, &command).await {
            Err(Failed::NoScript) => {
                let command = script.by_text(call.key, call.arguments);
                self.send(&connected, call.op, call.effect, deadline, &command).await
            }
            answer => answer,
        }
        .map_err(|failed| failed.error(call.op))
        .and_then(|value| read(call.op, call.effect, value))
    }

    /// Sends one command.
    pub(crate) async fn command<T: FromRedisValue>(
        &self,
        op: &'static str,
        effect: Effect,
        deadline: Deadline,
        command: &Cmd,
    ) -> Result<T, StoreError> {
        let connected = self.connected(op, deadline).await?;
        let answer = self.send(&connected, op, effect, deadline, command).await;
        answer.map_err(|failed| failed.error(op)).and_then(|value| read(op, effect, value))
    }

    async fn send(
        &self,
        connected: &Arc<Connected>,
        op: &'static str,
        effect: Effect,
        deadline: Deadline,
        command: &Cmd,
    ) -> Result<Value, Failed> {
        if let (Some(replicas), Effect::Write) = (&self.replicas, effect) {
            return match timeout_at(deadline, replicas.send(self, op, command)).await {
                Ok(answer) => answer,
                Err(_elapsed) => Err(Failed::Other(Refusal::TimedOut.error(op, effect))),
            };
        }
        let mut connection = connected.connection.clone();
        let Ok(answer) = timeout_at(deadline, connection.send_packed_command(command)).await else {
            self.forget(connected);
            return Err(Failed::Other(Refusal::TimedOut.error(op, effect)));
        };
        answer.and_then(Value::extract_error).map_err(|error| {
            if ends_connection(&error) {
                self.forget(connected);
            }
            Failed::of(error, op, effect)
        })
    }

    /// When a call that begins now must have ended, whatever it sends.
    pub(crate) fn deadline(&self) -> Deadline {
        tokio::time::Instant::now() + self.options.timeout
    }

    async fn connected(&self, op: &'static str, deadline: Deadline) -> Result<Arc<Connected>, StoreError> {
        if self.has_lost_records.load(Ordering::Relaxed) {
            return Err(Refusal::Amnesia.error(op, Effect::Read));
        }
        if let Some(connected) = self.current.read().clone() {
            return Ok(connected);
        }
        // Nothing has been sent yet, so whatever fails here was not applied.
        let connecting = timeout_at(deadline, self.connect()).await;
        connecting.unwrap_or_else(|_| Err(Refusal::TimedOut.error(op, Effect::Read)))
    }

    async fn connect(&self) -> Result<Arc<Connected>, StoreError> {
        let _alone = self.connecting.lock().await;
        if let Some(connected) = self.current.read().clone() {
            return Ok(connected);
        }
        let mut connection = self.connection().await.map_err(|error| unreachable(&error))?;
        let server = self.look_over(&mut connection).await?;
        let connected = Arc::new(Connected { connection, server });
        self.look_at_mark(&connected).await?;
        *self.current.write() = Some(connected.clone());
        Ok(connected)
    }

    /// A new connection. The driver's own time limits are off: every call has its own.
    pub(crate) async fn connection(&self) -> Result<MultiplexedConnection, RedisError> {
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let client = self.address.client(self.options.timeout).await?;
        client.get_multiplexed_async_connection_with_config(&config).await
    }

    async fn look_over(&self, connection: &mut MultiplexedConnection) -> Result<Server, StoreError> {
        let info: String =
            redis::cmd("INFO").query_async(connection).await.map_err(|error| unreachable(&error))?;
        // Hosted servers may keep their settings to themselves.
        let settings: Result<Vec<String>, RedisError> =
            redis::cmd("CONFIG").arg("GET").arg("appendfsync").query_async(connection).await;
        let appendfsync = settings.ok().and_then(|settings| settings.into_iter().nth(1));
        let mut server = Server::judge(&info, appendfsync.as_deref(), self.options.eviction)?;
        if self.address.may_fail_over() {
            server = server.with_failover();
        }
        if let Some(dialect) = self.options.dialect {
            server.dialect = dialect;
        }
        Ok(server)
    }

    async fn look_at_mark(&self, connected: &Arc<Connected>) -> Result<(), StoreError> {
        let key = format!("{}generation", self.options.prefix);
        let greatest_before = self.mark.known();
        let id = match (&greatest_before, self.options.making) {
            (None, Making::Make) => new_id()?,
            // A mark that is gone is not made again: that would hide what happened from everybody else.
            _ => String::new(),
        };
        let script = &connected.server.dialect.scripts().mark;
        let mut connection = connected.connection.clone();
        let sent_at = Instant::now();
        let mut looked = script.by_digest(&key, &[&id]).query_async(&mut connection).await;
        if let Err(error) = &looked
            && error.code() == Some("NOSCRIPT")
        {
            looked = script.by_text(&key, &[&id]).query_async(&mut connection).await;
        }
        let (id, pulse, now): (Option<String>, i64, u64) = looked.map_err(|error| unreachable(&error))?;
        self.time.set(Timestamp::from_millis(now), sent_at);
        let is_new = greatest_before.is_none();
        let memory = match id {
            Some(id) => self.mark.judge(greatest_before.as_ref(), Seen { id, pulse }),
            None if is_new => return Err(OpenError::Missing { prefix: self.options.prefix.clone() }.into()),
            None => Memory::Lost,
        };
        match (memory, self.options.amnesia) {
            (Memory::Whole, _) => Ok(()),
            (Memory::Lost, Amnesia::Accept) => {
                self.mark.forget();
                tracing::warn!("the server has lost records; going on, as was asked for");
                Ok(())
            }
            (Memory::Lost, Amnesia::Stop) => {
                self.has_lost_records.store(true, Ordering::Relaxed);
                tracing::error!("the server has lost records; nothing more is claimed by this process");
                Err(Refusal::Amnesia.error("open", Effect::Read))
            }
        }
    }

    /// Gives a connection up, so that the next call makes a new one.
    fn forget(&self, connected: &Arc<Connected>) {
        let mut current = self.current.write();
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, connected)) {
            *current = None;
        }
    }

    /// Looks at the server from time to time: whether it still answers, and whether it has lost anything. Whoever calls
    /// may give up before the link would notice by itself.
    pub(crate) async fn keep(link: Weak<Self>) {
        loop {
            let Some(every) = link.upgrade().map(|link| link.options.check_every) else { return };
            tokio::time::sleep(every).await;
            let Some(link) = link.upgrade() else { return };
            let deadline = link.deadline();
            let Ok(connected) = link.connected("check", deadline).await else { continue };
            if !matches!(timeout_at(deadline, link.look_at_mark(&connected)).await, Ok(Ok(()))) {
                link.forget(&connected);
            }
        }
    }
}

/// Why a command has no answer.
pub(crate) enum Failed {
    NoScript,
    Other(StoreError),
}

impl Failed {
    pub(crate) fn of(error: RedisError, op: &'static str, effect: Effect) -> Self {
        match error.code() {
            Some("NOSCRIPT") => Self::NoScript,
            _ => Self::Other(StoreError::new(judge(&error, effect), op).with_source(error)),
        }
    }

    fn error(self, op: &'static str) -> StoreError {
        match self {
            // It was sent with its text.
            Self::NoScript => Refusal::Reply.error(op, Effect::Write),
            Self::Other(error) => error,
        }
    }
}

fn read<T: FromRedisValue>(op: &'static str, effect: Effect, value: Value) -> Result<T, StoreError> {
    redis::from_redis_value(value).map_err(|_| Refusal::Reply.error(op, effect))
}

fn unreachable(error: &RedisError) -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, "open").with_source(error.clone())
}

fn new_id() -> Result<String, StoreError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| StoreError::new(StoreErrorKind::Unavailable, "open").with_source(error))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
