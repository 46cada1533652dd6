//! Looking at a server: what it is when connecting, and whether it has lost records since.

use std::time::Instant;

use hapax_core::{StoreError, StoreErrorKind, Timestamp};
use redis::RedisError;
use redis::aio::MultiplexedConnection;

use crate::config::{Amnesia, Making};
use crate::error::{Effect, OpenError, Refusal, is_full, unreachable};
use crate::link::{Connected, Link};
use crate::mark::{Memory, Seen};
use crate::server::{Membership, Server};

/// What a look at the marks has shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shown {
    /// All of them are as they should be.
    Whole,
    /// A slot is not there any more, or is just leaving: whoever has it now must be asked.
    Elsewhere,
}

/// What the server is.
pub(crate) async fn over(link: &Link, connection: &mut MultiplexedConnection) -> Result<Server, StoreError> {
    let info: String =
        redis::cmd("INFO").query_async(connection).await.map_err(|error| unreachable(&error))?;
    // Hosted servers may keep their settings to themselves.
    let settings: Result<Vec<String>, RedisError> =
        redis::cmd("CONFIG").arg("GET").arg("appendfsync").query_async(connection).await;
    let appendfsync = settings.ok().and_then(|settings| settings.into_iter().nth(1));
    let membership = if link.territory().is_member() { Membership::Member } else { Membership::Alone };
    let mut server = Server::judge(&info, appendfsync.as_deref(), link.options.eviction, membership)?;
    if link.address.may_fail_over() {
        server = server.watched(&info);
    } else if membership == Membership::Member {
        server = server.with_failover();
    }
    if let Some(dialect) = link.options.dialect {
        server.dialect = dialect;
    }
    Ok(server)
}

/// Whether the marks that should be on the server are there.
pub(crate) async fn at_marks(link: &Link, connected: &Connected) -> Result<Shown, StoreError> {
    let mut shown = Shown::Whole;
    for key in link.marks.of(&link.territory()) {
        if at_mark(link, connected, &key).await? == Shown::Elsewhere {
            shown = Shown::Elsewhere;
        }
    }
    Ok(shown)
}

async fn at_mark(link: &Link, connected: &Connected, key: &str) -> Result<Shown, StoreError> {
    let greatest_before = link.marks.known(key);
    let new_id = match (&greatest_before, link.options.making) {
        (None, Making::Make) => new_id()?,
        // A mark that is gone is not made again: that would hide what happened from everybody else.
        _ => String::new(),
    };
    let script = &connected.server.dialect.scripts().mark;
    let arguments: [&[u8]; 1] = [new_id.as_bytes()];
    let mut connection = connected.connection.clone();
    let sent_at = Instant::now();
    let mut looked = script.by_digest(key, &arguments).query_async(&mut connection).await;
    if looked.as_ref().is_err_and(|error: &RedisError| error.code() == Some("NOSCRIPT")) {
        looked = script.by_text(key, &arguments).query_async(&mut connection).await;
    }
    let (id, pulse, now): (Option<String>, i64, u64) = match looked {
        Ok(seen) => seen,
        Err(error) if matches!(error.code(), Some("MOVED" | "ASK")) => return Ok(Shown::Elsewhere),
        Err(error) => {
            let error = unreachable(&error);
            return match greatest_before {
                Some(before) if is_full(&error) => unchanged_mark(link, connection, key, &before).await,
                _ => Err(error),
            };
        }
    };
    link.time.set(Timestamp::from_millis(now), sent_at);
    let memory = match (id, &greatest_before) {
        (Some(id), _) => link.marks.judge(key, greatest_before.as_ref(), Seen { id, pulse }),
        (None, Some(_)) => Memory::Lost,
        (None, None) if link.marks.is_home(key) && link.options.making != Making::Leave => {
            return Err(OpenError::Missing { prefix: link.options.prefix.clone() }.into());
        }
        // It is for those to make who run operations.
        (None, None) => Memory::Whole,
    };
    act_on(link, key, memory)
}

/// The look at a server that takes no writes: the number may stay as it is, and must not be a smaller one.
async fn unchanged_mark(
    link: &Link,
    mut connection: MultiplexedConnection,
    key: &str,
    before: &Seen,
) -> Result<Shown, StoreError> {
    let mut fields = redis::cmd("HMGET");
    fields.arg(key).arg("id").arg("pulse");
    let (id, pulse): (Option<String>, Option<i64>) = match fields.query_async(&mut connection).await {
        Ok(fields) => fields,
        Err(error) if matches!(error.code(), Some("MOVED" | "ASK")) => return Ok(Shown::Elsewhere),
        Err(error) => return Err(unreachable(&error)),
    };
    let is_whole = id.as_ref() == Some(&before.id) && pulse >= Some(before.pulse);
    act_on(link, key, if is_whole { Memory::Whole } else { Memory::Lost })
}

fn act_on(link: &Link, key: &str, memory: Memory) -> Result<Shown, StoreError> {
    match (memory, link.options.amnesia) {
        (Memory::Whole, _) => {}
        (Memory::Lost, Amnesia::Accept) => {
            link.marks.forget(key);
            tracing::warn!("the server has lost records; going on, as was asked for");
        }
        (Memory::Lost, Amnesia::Stop) => {
            link.marks.lose();
            tracing::error!("the server has lost records; nothing more is claimed by this process");
            return Err(Refusal::Amnesia.error("open", Effect::Read));
        }
    }
    Ok(Shown::Whole)
}

fn new_id() -> Result<String, StoreError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| StoreError::new(StoreErrorKind::Unavailable, "open").with_source(error))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
