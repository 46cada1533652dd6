//! [`ServerConnection`]: the connection to one server, shared by all calls, reconnected when it breaks; the server is probed
//! after every connect.
//!
//! Nothing is sent twice here: a call whose reply is lost is [`Unknown`](hapax_core::StoreErrorKind::Unknown), and the
//! caller repeats it with its nonce. Every call ends within the configured timeout. Redirections by a cluster member are
//! returned to the caller.

use std::error::Error as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hapax_core::{StoreError, StoreErrorKind};
use parking_lot::RwLock;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, RedisError, Value};
use tokio::time::{timeout, timeout_at};

use crate::address::{Address, Host, Located};
use crate::clock::ServerTime;
use crate::config::Options;
use crate::error::{CallFailure, Effect, OpenError, classify_error, ends_connection, unreachable};
use crate::generation::GenerationMarks;
use crate::probe::{self, MarkCheck};
use crate::replicas::Replicas;
use crate::script::{Script, Scripts};
use crate::server::Server;
use crate::slots::{SlotSet, redirected};

/// Back-off after a failed connect. Calls in between fail with the same reason: a server that is starting or overloaded must
/// not be probed for every call.
const CONNECT_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// A connection to a probed server.
#[derive(Debug)]
pub(crate) struct OpenConnection {
    pub(crate) located: Located,
    pub(crate) connection: MultiplexedConnection,
    pub(crate) server: Server,
}

/// The connection to one server.
#[derive(Debug)]
pub(crate) struct ServerConnection {
    pub(crate) options: Arc<Options>,
    pub(crate) address: Address,
    pub(crate) time: ServerTime,
    pub(crate) marks: Arc<GenerationMarks>,
    slots: RwLock<SlotSet>,
    current: RwLock<Option<Arc<OpenConnection>>>,
    connecting: tokio::sync::Mutex<Option<ConnectFailure>>,
    replicas: Option<Replicas>,
}

/// The last failed attempt to connect.
#[derive(Debug)]
struct ConnectFailure {
    at: Instant,
    why: String,
}

/// When a call must have ended.
pub(crate) type Deadline = tokio::time::Instant;

/// One call on one key.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) op: &'static str,
    pub(crate) deadline: Deadline,
    pub(crate) effect: Effect,
    pub(crate) key: &'a str,
    pub(crate) body: CallBody<'a>,
}

/// The command of a call.
#[derive(Clone, Copy)]
pub(crate) enum CallBody<'a> {
    /// A script, with its arguments besides the key.
    Script(fn(&Scripts) -> &Script, &'a [&'a [u8]]),
    /// A command that contains the key.
    Command(&'a Cmd),
}

/// Why a cluster member serves a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SlotAccess {
    /// It owns the key's slot.
    Owned,
    /// It imports the slot, and the exporting member no longer has the key (`ASK`).
    Importing,
}

impl ServerConnection {
    pub(crate) fn new(
        options: Arc<Options>,
        address: Address,
        marks: Arc<GenerationMarks>,
        slots: SlotSet,
    ) -> Arc<Self> {
        Arc::new(Self {
            replicas: Replicas::new(options.replicas),
            options,
            address,
            time: ServerTime::new(),
            marks,
            slots: RwLock::new(slots),
            current: RwLock::new(None),
            connecting: tokio::sync::Mutex::default(),
        })
    }

    /// The keys that the server is responsible for, as far as known.
    pub(crate) fn slots(&self) -> SlotSet {
        self.slots.read().clone()
    }

    /// Assigns the keys that the server is responsible for; returns whether that is a change.
    pub(crate) fn assign(&self, slots: SlotSet) -> bool {
        let mut current = self.slots.write();
        let is_changed = *current != slots;
        *current = slots;
        is_changed
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.current.read().is_some()
    }

    /// Whether this is the connection in use.
    pub(crate) fn uses(&self, connected: &Arc<OpenConnection>) -> bool {
        self.current.read().as_ref().is_some_and(|current| Arc::ptr_eq(current, connected))
    }

    /// Probes the server. Fails if it takes no claims.
    pub(crate) async fn probe(&self, op: &'static str, deadline: Deadline) -> Result<Server, StoreError> {
        let connected = self.connected(op, deadline).await?;
        let mut connection = connected.connection.clone();
        let probed = timeout_at(deadline, probe::read_server(self, &mut connection)).await;
        let probed = probed.unwrap_or_else(|_| Err(CallFailure::TimedOut.error(op, Effect::Read)));
        let server = probed.inspect_err(|error| {
            if error.kind() == StoreErrorKind::Unavailable {
                self.forget(&connected);
            }
        })?;
        self.update(&connected, &server);
        server.takes_claims()?;
        Ok(server)
    }

    /// Applies changed server settings to the connection in use.
    fn update(&self, connected: &Arc<OpenConnection>, server: &Server) {
        if connected.server == *server {
            return;
        }
        match (&connected.server.evicts, &server.evicts) {
            (None, Some(policy)) => {
                tracing::error!(
                    policy,
                    "the server evicts keys when its memory is full; new operations are refused"
                );
            }
            (Some(_), None) => {
                tracing::info!("the server no longer evicts keys; new operations are accepted")
            }
            _ => {}
        }
        let (located, connection) = (connected.located.clone(), connected.connection.clone());
        self.replace(
            connected,
            Some(Arc::new(OpenConnection { located, connection, server: server.clone() })),
        );
    }

    /// Checks that the server is still the primary, that it responds, that its generation marks are intact and that its settings
    /// are still those of a store.
    pub(crate) async fn check(&self, deadline: Deadline) -> Result<MarkCheck, StoreError> {
        let connected = self.connected("check", deadline).await?;
        // A sentinel that hangs leaves time to check the current server.
        if let Ok(Some(successor)) = timeout(self.options.timeout * 3 / 4, self.successor(&connected)).await {
            // It has just been probed.
            self.replace(&connected, Some(Arc::new(successor)));
            return Ok(MarkCheck::Intact);
        }
        let probe = async {
            let checked = probe::check_marks(self, &connected).await?;
            Ok((checked, probe::read_server(self, &mut connected.connection.clone()).await?))
        };
        let probed = timeout_at(deadline, probe).await;
        let probed = probed.unwrap_or_else(|_| Err(CallFailure::TimedOut.error("check", Effect::Read)));
        let (checked, server) = probed.inspect_err(|_| self.forget(&connected))?;
        self.update(&connected, &server);
        Ok(checked)
    }

    /// Sends a call and returns the reply.
    pub(crate) async fn answer(&self, call: &Call<'_>, access: SlotAccess) -> Result<Value, CallError> {
        let connected = self.connected(call.op, call.deadline).await.map_err(CallError::Other)?;
        self.answer_on(&connected, call, access).await
    }

    /// The same on a given connection.
    pub(crate) async fn answer_on(
        &self,
        connected: &Arc<OpenConnection>,
        call: &Call<'_>,
        access: SlotAccess,
    ) -> Result<Value, CallError> {
        if call.effect == Effect::Claim {
            connected.server.takes_claims().map_err(StoreError::from)?;
        }
        let (script, arguments) = match call.body {
            CallBody::Command(command) => return self.send(connected, call, command, access).await,
            CallBody::Script(script, arguments) => (script(connected.server.commands.scripts()), arguments),
        };
        let by_digest = script.by_digest(call.key, arguments);
        match self.send(connected, call, &by_digest, access).await {
            Err(CallError::NoScript(_)) => {
                self.send(connected, call, &script.by_text(call.key, arguments), access).await
            }
            answer => answer,
        }
    }

    async fn send(
        &self,
        connected: &Arc<OpenConnection>,
        call: &Call<'_>,
        command: &Cmd,
        access: SlotAccess,
    ) -> Result<Value, CallError> {
        if let (Some(replicas), Effect::Write | Effect::Claim) = (&self.replicas, call.effect) {
            return replicas.send(self, connected, call, command, access).await;
        }
        let mut connection = connected.connection.clone();
        let Ok(answer) = timeout_at(call.deadline, send(&mut connection, command, access)).await else {
            self.forget(connected);
            return Err(CallFailure::TimedOut.error(call.op, call.effect).into());
        };
        answer.map_err(|error| {
            if ends_connection(&error) {
                self.forget(connected);
            }
            self.call_error(error, call.op, call.effect)
        })
    }

    /// Maps a driver error to the outcome of the call.
    pub(crate) fn call_error(&self, error: RedisError, op: &'static str, effect: Effect) -> CallError {
        let to = error.redirect_node().and_then(|(to, _slot)| redirected(to, &self.address.host()));
        let (code, kind) = (error.code().map(str::to_owned), classify_error(&error, effect));
        let error = StoreError::new(kind, op).with_source(error);
        match (code.as_deref(), to) {
            (Some("NOSCRIPT"), _) => CallError::NoScript(error),
            (Some("ASK"), Some(to)) => CallError::Redirected { to, access: SlotAccess::Importing, error },
            (Some("MOVED"), Some(to)) => CallError::Redirected { to, access: SlotAccess::Owned, error },
            _ => CallError::Other(error),
        }
    }

    /// The connection in use; connects if there is none.
    pub(crate) async fn connected(
        &self,
        op: &'static str,
        deadline: Deadline,
    ) -> Result<Arc<OpenConnection>, StoreError> {
        if self.marks.has_lost_records() {
            return Err(CallFailure::Amnesia.error(op, Effect::Read));
        }
        if let Some(connected) = self.current.read().clone() {
            return Ok(connected);
        }
        // Nothing has been sent yet, so a failure here is not applied.
        let too_late = || CallFailure::TimedOut.error(op, Effect::Read);
        let Ok(mut failure) = timeout_at(deadline, self.connecting.lock()).await else {
            return Err(too_late());
        };
        if let Some(connected) = self.current.read().clone() {
            return Ok(connected);
        }
        if let Some(last) = failure.as_ref().filter(|last| last.at.elapsed() < CONNECT_AGAIN_AFTER) {
            return Err(StoreError::new(StoreErrorKind::Unavailable, "open").with_source(last.why.clone()));
        }
        match timeout_at(deadline, self.fresh()).await.unwrap_or_else(|_| Err(too_late())) {
            Ok(connected) => Ok(self.current.write().get_or_insert(Arc::new(connected)).clone()),
            Err(error) => {
                *failure = ConnectFailure::of(&error);
                Err(error)
            }
        }
    }

    /// A connection to the new primary, if there was a failover. A replaced primary may not know it yet: it goes on answering,
    /// and everything written to it is lost.
    async fn successor(&self, connected: &OpenConnection) -> Option<OpenConnection> {
        if !self.address.may_fail_over() {
            return None;
        }
        let found = self.address.locate(self.options.timeout).await.ok()?;
        // A sentinel that lags behind may name a former primary.
        let is_later = found.epoch > connected.located.epoch && found.host != connected.located.host;
        if is_later { self.fresh_at(found).await.ok() } else { None }
    }

    /// Locates, connects and probes the server.
    pub(crate) async fn fresh(&self) -> Result<OpenConnection, StoreError> {
        let located = self.address.locate(self.options.timeout).await;
        self.fresh_at(located.map_err(|error| unreachable(&error))?).await
    }

    /// The same for a server that has been located.
    pub(crate) async fn fresh_at(&self, located: Located) -> Result<OpenConnection, StoreError> {
        let mut connection = self.connection(&located.host).await.map_err(|error| unreachable(&error))?;
        let server = probe::read_server(self, &mut connection).await?;
        let connected = OpenConnection { located, connection, server };
        probe::check_marks(self, &connected).await?;
        Ok(connected)
    }

    /// Connects. The driver's own timeouts are off: every call has its own.
    async fn connection(&self, host: &Host) -> Result<MultiplexedConnection, RedisError> {
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        self.address.client(host)?.get_multiplexed_async_connection_with_config(&config).await
    }

    /// Drops a connection, and the replica connections to the same server, so that the next call reconnects.
    pub(crate) fn forget(&self, connected: &Arc<OpenConnection>) {
        self.replace(connected, None);
    }

    /// Replaces the connection in use, unless another task has replaced it.
    fn replace(&self, connected: &Arc<OpenConnection>, next: Option<Arc<OpenConnection>>) {
        let mut current = self.current.write();
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, connected)) {
            *current = next;
        }
        drop(current);
        // Last, so that a task that saw the old connection in use cannot return one to the pool afterwards.
        if let Some(replicas) = &self.replicas {
            replicas.forget();
        }
    }
}

impl ConnectFailure {
    /// None if the server was reached and is not usable: then every caller gets the full error.
    fn of(error: &StoreError) -> Option<Self> {
        let is_unusable = error.source().is_some_and(|source| source.is::<OpenError>());
        let is_unreachable = error.kind() == StoreErrorKind::Unavailable && !is_unusable;
        let why = || error.source().map_or_else(|| error.to_string(), ToString::to_string);
        is_unreachable.then(|| Self { at: Instant::now(), why: why() })
    }
}

/// Sends one command. `ASKING` goes in the same write, so that no other command comes between the two.
pub(crate) async fn send(
    connection: &mut MultiplexedConnection,
    command: &Cmd,
    access: SlotAccess,
) -> Result<Value, RedisError> {
    let answer = match access {
        SlotAccess::Owned => connection.send_packed_command(command).await?,
        SlotAccess::Importing => {
            let mut both = redis::pipe();
            both.cmd("ASKING").add_command(command.clone());
            let answers = connection.send_packed_commands(&both, 1, 1).await?;
            answers.into_iter().next().unwrap_or(Value::Nil)
        }
    };
    answer.extract_error()
}

/// Why a call failed.
pub(crate) enum CallError {
    /// The server does not know the script.
    NoScript(StoreError),
    /// Nothing was executed; another member has the key.
    Redirected {
        to: Host,
        access: SlotAccess,
        error: StoreError,
    },
    Other(StoreError),
}

impl CallError {
    pub(crate) fn error(self) -> StoreError {
        match self {
            Self::NoScript(error) | Self::Redirected { error, .. } | Self::Other(error) => error,
        }
    }
}

impl From<StoreError> for CallError {
    fn from(error: StoreError) -> Self {
        Self::Other(error)
    }
}
