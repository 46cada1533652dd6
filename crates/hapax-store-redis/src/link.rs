//! The way to one server: one connection that all calls share, made anew when it breaks, looked over each time.
//!
//! Nothing is sent twice from here: a call whose answer is lost is [`Unknown`](hapax_core::StoreErrorKind::Unknown), and
//! whoever made it sends it again with its nonce. Every call ends within the configured time. Where a member of a cluster
//! refers to another one, the caller is told.

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
use crate::error::{Effect, OpenError, Refusal, ends_connection, judge, unreachable};
use crate::look::{self, Shown};
use crate::mark::Marks;
use crate::replicas::Replicas;
use crate::script::{Script, Scripts};
use crate::server::Server;
use crate::slots::{Territory, redirected};

/// How long a server that could not be reached is left alone. Callers in between are told why it was not: one that is
/// starting, or has too much to do, must not be looked over for every call.
const CONNECT_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// A server that was looked over, and a connection to it.
#[derive(Debug)]
pub(crate) struct Connected {
    pub(crate) located: Located,
    pub(crate) connection: MultiplexedConnection,
    pub(crate) server: Server,
}

/// The way to one server.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) options: Arc<Options>,
    pub(crate) address: Address,
    pub(crate) time: ServerTime,
    pub(crate) marks: Arc<Marks>,
    territory: RwLock<Territory>,
    current: RwLock<Option<Arc<Connected>>>,
    connecting: tokio::sync::Mutex<Option<Failure>>,
    replicas: Option<Replicas>,
}

/// The last attempt to connect, which did not reach the server.
#[derive(Debug)]
struct Failure {
    at: Instant,
    why: String,
}

/// When a call must have ended.
pub(crate) type Deadline = tokio::time::Instant;

/// One call about one key.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) op: &'static str,
    pub(crate) deadline: Deadline,
    pub(crate) effect: Effect,
    pub(crate) key: &'a str,
    pub(crate) what: What<'a>,
}

/// What a call sends.
#[derive(Clone, Copy)]
pub(crate) enum What<'a> {
    /// A script, with what it takes beside the key.
    Script(fn(&Scripts) -> &Script, &'a [&'a [u8]]),
    /// A command that has the key in it.
    Command(&'a Cmd),
}

/// By what right a member of a cluster is asked for a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Right {
    /// The key is in one of its slots.
    Owner,
    /// The slot is on its way there, and the member that it leaves has no such key any more.
    Sent,
}

impl Link {
    pub(crate) fn new(
        options: Arc<Options>,
        address: Address,
        marks: Arc<Marks>,
        territory: Territory,
    ) -> Arc<Self> {
        Arc::new(Self {
            replicas: Replicas::new(options.replicas),
            options,
            address,
            time: ServerTime::new(),
            marks,
            territory: RwLock::new(territory),
            current: RwLock::new(None),
            connecting: tokio::sync::Mutex::default(),
        })
    }

    /// What the server is responsible for, as far as was told.
    pub(crate) fn territory(&self) -> Territory {
        self.territory.read().clone()
    }

    /// Tells what the server is responsible for from now on; whether that is news.
    pub(crate) fn assign(&self, territory: Territory) -> bool {
        let mut current = self.territory.write();
        let is_news = *current != territory;
        *current = territory;
        is_news
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.current.read().is_some()
    }

    /// Whether this is the connection in use.
    pub(crate) fn uses(&self, connected: &Arc<Connected>) -> bool {
        self.current.read().as_ref().is_some_and(|current| Arc::ptr_eq(current, connected))
    }

    /// What the server is, looked at now. One that takes no claims is no store.
    pub(crate) async fn look(&self, op: &'static str, deadline: Deadline) -> Result<Server, StoreError> {
        let connected = self.connected(op, deadline).await?;
        let mut connection = connected.connection.clone();
        let looked = timeout_at(deadline, look::over(self, &mut connection)).await;
        let looked = looked.unwrap_or_else(|_| Err(Refusal::TimedOut.error(op, Effect::Read)));
        let server = looked.inspect_err(|error| {
            if error.kind() == StoreErrorKind::Unavailable {
                self.forget(&connected);
            }
        })?;
        self.update(&connected, &server);
        server.takes_claims()?;
        Ok(server)
    }

    /// Takes what a look has shown of a server's settings into use.
    fn update(&self, connected: &Arc<Connected>, server: &Server) {
        if connected.server == *server {
            return;
        }
        match (&connected.server.evicts, &server.evicts) {
            (None, Some(policy)) => {
                tracing::error!(
                    policy,
                    "the server drops keys when its memory is full; new operations are refused"
                );
            }
            (Some(_), None) => {
                tracing::info!("the server drops no keys any more; new operations are taken again")
            }
            _ => {}
        }
        let (located, connection) = (connected.located.clone(), connected.connection.clone());
        self.replace(connected, Some(Arc::new(Connected { located, connection, server: server.clone() })));
    }

    /// Looks whether it still is the server, whether it answers, whether it has lost anything, and whether its settings are
    /// still those of a store.
    pub(crate) async fn check(&self, deadline: Deadline) -> Result<Shown, StoreError> {
        let connected = self.connected("check", deadline).await?;
        // One that hangs leaves time for a look at the server in use.
        if let Ok(Some(successor)) = timeout(self.options.timeout * 3 / 4, self.successor(&connected)).await {
            // It was looked at a moment ago.
            self.replace(&connected, Some(Arc::new(successor)));
            return Ok(Shown::Whole);
        }
        let look = async {
            let shown = look::at_marks(self, &connected).await?;
            Ok((shown, look::over(self, &mut connected.connection.clone()).await?))
        };
        let looked = timeout_at(deadline, look).await;
        let looked = looked.unwrap_or_else(|_| Err(Refusal::TimedOut.error("check", Effect::Read)));
        let (shown, server) = looked.inspect_err(|_| self.forget(&connected))?;
        self.update(&connected, &server);
        Ok(shown)
    }

    /// Sends a call and returns what the server answers.
    pub(crate) async fn answer(&self, call: &Call<'_>, right: Right) -> Result<Value, Failed> {
        let connected = self.connected(call.op, call.deadline).await.map_err(Failed::Other)?;
        self.answer_on(&connected, call, right).await
    }

    /// The same on a connection that was just read.
    pub(crate) async fn answer_on(
        &self,
        connected: &Arc<Connected>,
        call: &Call<'_>,
        right: Right,
    ) -> Result<Value, Failed> {
        if call.effect == Effect::Claim {
            connected.server.takes_claims().map_err(StoreError::from)?;
        }
        let (script, arguments) = match call.what {
            What::Command(command) => return self.send(connected, call, command, right).await,
            What::Script(script, arguments) => (script(connected.server.dialect.scripts()), arguments),
        };
        let by_digest = script.by_digest(call.key, arguments);
        match self.send(connected, call, &by_digest, right).await {
            Err(Failed::NoScript(_)) => {
                self.send(connected, call, &script.by_text(call.key, arguments), right).await
            }
            answer => answer,
        }
    }

    async fn send(
        &self,
        connected: &Arc<Connected>,
        call: &Call<'_>,
        command: &Cmd,
        right: Right,
    ) -> Result<Value, Failed> {
        if let (Some(replicas), Effect::Write | Effect::Claim) = (&self.replicas, call.effect) {
            return replicas.send(self, connected, call, command, right).await;
        }
        let mut connection = connected.connection.clone();
        let Ok(answer) = timeout_at(call.deadline, send(&mut connection, command, right)).await else {
            self.forget(connected);
            return Err(Refusal::TimedOut.error(call.op, call.effect).into());
        };
        answer.map_err(|error| {
            if ends_connection(&error) {
                self.forget(connected);
            }
            self.failed(error, call.op, call.effect)
        })
    }

    /// What an error of the driver means for the call.
    pub(crate) fn failed(&self, error: RedisError, op: &'static str, effect: Effect) -> Failed {
        let to = error.redirect_node().and_then(|(to, _slot)| redirected(to, &self.address.host()));
        let (code, kind) = (error.code().map(str::to_owned), judge(&error, effect));
        let error = StoreError::new(kind, op).with_source(error);
        match (code.as_deref(), to) {
            (Some("NOSCRIPT"), _) => Failed::NoScript(error),
            (Some("ASK"), Some(to)) => Failed::Redirected { to, right: Right::Sent, error },
            (Some("MOVED"), Some(to)) => Failed::Redirected { to, right: Right::Owner, error },
            _ => Failed::Other(error),
        }
    }

    /// The connection, made now if there is none.
    pub(crate) async fn connected(
        &self,
        op: &'static str,
        deadline: Deadline,
    ) -> Result<Arc<Connected>, StoreError> {
        if self.marks.has_lost_records() {
            return Err(Refusal::Amnesia.error(op, Effect::Read));
        }
        if let Some(connected) = self.current.read().clone() {
            return Ok(connected);
        }
        // Nothing has been sent yet, so whatever fails here was not applied.
        let too_late = || Refusal::TimedOut.error(op, Effect::Read);
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
                *failure = Failure::of(&error);
                Err(error)
            }
        }
    }

    /// The server that is the primary instead, where there is one and it can be a store. A primary that was replaced may
    /// not know it yet: it goes on answering, and all that is written there is lost.
    async fn successor(&self, connected: &Connected) -> Option<Connected> {
        if !self.address.may_fail_over() {
            return None;
        }
        let found = self.address.locate(self.options.timeout).await.ok()?;
        // Where a sentinel that lags behind would lead back to, nothing is even looked at.
        let is_later = found.epoch > connected.located.epoch && found.place != connected.located.place;
        if is_later { self.fresh_at(found).await.ok() } else { None }
    }

    /// A new connection to the server, which was looked over.
    pub(crate) async fn fresh(&self) -> Result<Connected, StoreError> {
        let located = self.address.locate(self.options.timeout).await;
        self.fresh_at(located.map_err(|error| unreachable(&error))?).await
    }

    /// The same to a server that was found already.
    pub(crate) async fn fresh_at(&self, located: Located) -> Result<Connected, StoreError> {
        let mut connection = self.connection(&located.place).await.map_err(|error| unreachable(&error))?;
        let server = look::over(self, &mut connection).await?;
        let connected = Connected { located, connection, server };
        look::at_marks(self, &connected).await?;
        Ok(connected)
    }

    /// A new connection. The driver's own time limits are off: every call has its own.
    async fn connection(&self, place: &Host) -> Result<MultiplexedConnection, RedisError> {
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        self.address.client(place)?.get_multiplexed_async_connection_with_config(&config).await
    }

    /// Gives a connection up, and those that lead to the same server, so that the next call makes a new one.
    pub(crate) fn forget(&self, connected: &Arc<Connected>) {
        self.replace(connected, None);
    }

    /// Puts another connection in the place of the one in use, unless somebody else did.
    fn replace(&self, connected: &Arc<Connected>, next: Option<Arc<Connected>>) {
        let mut current = self.current.write();
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, connected)) {
            *current = next;
        }
        drop(current);
        // Afterwards, so that nobody puts one back who saw the old connection in use.
        if let Some(replicas) = &self.replicas {
            replicas.forget();
        }
    }
}

impl Failure {
    /// None where the server was reached and is not what it should be: whoever asks is told in full.
    fn of(error: &StoreError) -> Option<Self> {
        let is_judged = error.source().is_some_and(|source| source.is::<OpenError>());
        let is_unreachable = error.kind() == StoreErrorKind::Unavailable && !is_judged;
        let why = || error.source().map_or_else(|| error.to_string(), ToString::to_string);
        is_unreachable.then(|| Self { at: Instant::now(), why: why() })
    }
}

/// Sends one command. What goes before it goes in the same piece, so that nothing comes between the two.
pub(crate) async fn send(
    connection: &mut MultiplexedConnection,
    command: &Cmd,
    right: Right,
) -> Result<Value, RedisError> {
    let answer = match right {
        Right::Owner => connection.send_packed_command(command).await?,
        Right::Sent => {
            let mut both = redis::pipe();
            both.cmd("ASKING").add_command(command.clone());
            let answers = connection.send_packed_commands(&both, 1, 1).await?;
            answers.into_iter().next().unwrap_or(Value::Nil)
        }
    };
    answer.extract_error()
}

/// Why a call has no answer.
pub(crate) enum Failed {
    /// The server does not know the script.
    NoScript(StoreError),
    /// Nothing was done, for somebody else has the key.
    Redirected {
        to: Host,
        right: Right,
        error: StoreError,
    },
    Other(StoreError),
}

impl Failed {
    pub(crate) fn error(self) -> StoreError {
        match self {
            Self::NoScript(error) | Self::Redirected { error, .. } | Self::Other(error) => error,
        }
    }
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self::Other(error)
    }
}
