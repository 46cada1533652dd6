//! Server probes: what the server is, and whether it has lost records.

use std::time::Instant;

use hapax_core::{StoreError, StoreErrorKind, Timestamp};
use redis::RedisError;
use redis::aio::MultiplexedConnection;

use crate::config::{Amnesia, CreateMode};
use crate::connection::{OpenConnection, ServerConnection};
use crate::error::{CallFailure, Effect, OpenError, is_full, unreachable};
use crate::generation::{DataState, MarkReading};
use crate::server::{Membership, Server};

/// The result of checking the generation marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MarkCheck {
    /// All marks are intact.
    Intact,
    /// A slot has moved or is migrating: its new owner must be checked.
    Moved,
}

/// Reads the server's identity and settings.
pub(crate) async fn read_server(
    target: &ServerConnection,
    connection: &mut MultiplexedConnection,
) -> Result<Server, StoreError> {
    let info: String =
        redis::cmd("INFO").query_async(connection).await.map_err(|error| unreachable(&error))?;
    // Hosted servers may forbid CONFIG.
    let settings: Result<Vec<String>, RedisError> =
        redis::cmd("CONFIG").arg("GET").arg("appendfsync").query_async(connection).await;
    let appendfsync = settings.ok().and_then(|settings| settings.into_iter().nth(1));
    let membership = if target.slots().is_member() { Membership::Member } else { Membership::Alone };
    let mut server = Server::evaluate(&info, appendfsync.as_deref(), target.options.eviction, membership)?;
    if target.address.may_fail_over() {
        server = server.watched(&info);
    } else if membership == Membership::Member {
        server = server.with_failover();
    }
    if let Some(commands) = target.options.commands {
        server.commands = commands;
    }
    Ok(server)
}

/// Checks the generation marks that should be on the server.
pub(crate) async fn check_marks(
    target: &ServerConnection,
    connected: &OpenConnection,
) -> Result<MarkCheck, StoreError> {
    let mut checked = MarkCheck::Intact;
    for key in target.marks.of(&target.slots()) {
        if check_mark(target, connected, &key).await? == MarkCheck::Moved {
            checked = MarkCheck::Moved;
        }
    }
    Ok(checked)
}

async fn check_mark(
    target: &ServerConnection,
    connected: &OpenConnection,
    key: &str,
) -> Result<MarkCheck, StoreError> {
    let greatest_before = target.marks.known(key);
    let new_id = match (&greatest_before, target.options.create_mode) {
        (None, CreateMode::Create) => new_id()?,
        // A lost mark is not recreated: that would hide the loss from other processes.
        _ => String::new(),
    };
    let script = &connected.server.commands.scripts().generation;
    let arguments: [&[u8]; 1] = [new_id.as_bytes()];
    let mut connection = connected.connection.clone();
    let sent_at = Instant::now();
    let mut reply = script.by_digest(key, &arguments).query_async(&mut connection).await;
    if reply.as_ref().is_err_and(|error: &RedisError| error.code() == Some("NOSCRIPT")) {
        reply = script.by_text(key, &arguments).query_async(&mut connection).await;
    }
    let (id, pulse, now): (Option<String>, i64, u64) = match reply {
        Ok(seen) => seen,
        Err(error) if matches!(error.code(), Some("MOVED" | "ASK")) => return Ok(MarkCheck::Moved),
        Err(error) => {
            let error = unreachable(&error);
            return match greatest_before {
                Some(before) if is_full(&error) => {
                    check_mark_read_only(target, connection, key, &before).await
                }
                _ => Err(error),
            };
        }
    };
    target.time.set(Timestamp::from_millis(now), sent_at);
    let state = match (id, &greatest_before) {
        (Some(id), _) => {
            target.marks.record_reading(key, greatest_before.as_ref(), MarkReading { id, pulse })
        }
        (None, Some(_)) => DataState::Lost,
        (None, None) if target.marks.is_home(key) && target.options.create_mode != CreateMode::ProbeOnly => {
            return Err(OpenError::Missing { prefix: target.options.prefix.clone() }.into());
        }
        // Only processes that run operations create it.
        (None, None) => DataState::Intact,
    };
    apply_state(target, key, state)
}

/// Checks a mark on a server that refuses writes: the counter may be unchanged and must not be smaller.
async fn check_mark_read_only(
    target: &ServerConnection,
    mut connection: MultiplexedConnection,
    key: &str,
    before: &MarkReading,
) -> Result<MarkCheck, StoreError> {
    let mut fields = redis::cmd("HMGET");
    fields.arg(key).arg("id").arg("pulse");
    let (id, pulse): (Option<String>, Option<i64>) = match fields.query_async(&mut connection).await {
        Ok(fields) => fields,
        Err(error) if matches!(error.code(), Some("MOVED" | "ASK")) => return Ok(MarkCheck::Moved),
        Err(error) => return Err(unreachable(&error)),
    };
    let is_intact = id.as_ref() == Some(&before.id) && pulse >= Some(before.pulse);
    apply_state(target, key, if is_intact { DataState::Intact } else { DataState::Lost })
}

fn apply_state(target: &ServerConnection, key: &str, state: DataState) -> Result<MarkCheck, StoreError> {
    match (state, target.options.amnesia) {
        (DataState::Intact, _) => {}
        (DataState::Lost, Amnesia::Accept) => {
            target.marks.forget(key);
            tracing::warn!("the server has lost records; going on (amnesia=accept)");
        }
        (DataState::Lost, Amnesia::Stop) => {
            target.marks.lose();
            tracing::error!("the server has lost records; this process claims nothing more");
            return Err(CallFailure::Amnesia.error("open", Effect::Read));
        }
    }
    Ok(MarkCheck::Intact)
}

fn new_id() -> Result<String, StoreError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| StoreError::new(StoreErrorKind::Unavailable, "open").with_source(error))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
