//! The claim: one native command for a fresh key and for a replay, one more script for everything else. A server that is
//! out of memory is only read.

use std::sync::Arc;

use hapax_core::{
    Claim, ClaimRequest, Fence, Lease, Lookup, Nonce, OnLapse, StoreError, Timestamp, transition,
};
use redis::Value;

use crate::connection::{Call, CallBody, Deadline, ServerConnection};
use crate::error::{CallFailure, Effect, is_wrong_type, leaves_records_readable};
use crate::layout::{self, Stored};
use crate::routing::{self, Router, SlotOwner};
use crate::script::{CommandSet, sized};
use crate::store::get;

const OP: &str = "claim";

/// Claims a key.
pub(crate) async fn claim(router: &Router, ask: &ClaimRequest) -> Result<Claim, StoreError> {
    let key = router.key(&ask.key.id);
    let (value, keep_ms) = layout::first_claim(ask, &key);
    let deadline = router.deadline();
    let owner = router.owner(&key, OP, deadline).await?;
    let answer = match owner.connected.server.commands {
        CommandSet::Redis6 => claim_by_script(router, ask, &key, &value, deadline).await,
        CommandSet::Redis7 => match set_if_absent(router, owner, &key, &value, keep_ms, deadline).await {
            Ok((None, _)) => return Ok(acquired(ask, 1)),
            Ok((Some(found), server)) => match replay(&server, ask, &key, &found) {
                Some(claim) => return Ok(claim),
                None => claim_by_script(router, ask, &key, &value, deadline).await,
            },
            Err(error) => Err(error),
        },
    };
    match answer {
        // The key holds another type than a string; it must not be treated as absent.
        Err(error) if is_wrong_type(&error) => Ok(Claim::Unreadable),
        Err(error) if leaves_records_readable(&error) => {
            from_record(router, ask, deadline).await.ok_or(error)
        }
        answer => answer,
    }
}

/// The answer of a server that refuses the claim, if the stored record alone determines it: finished records are replayed,
/// busy and uncertain ones reported. Nothing is written, so a lapsed claim is marked as such by a later claim.
async fn from_record(router: &Router, ask: &ClaimRequest, deadline: Deadline) -> Option<Claim> {
    match get(router, OP, &ask.key.id, deadline).await.ok()? {
        Lookup::Absent => None,
        Lookup::Unreadable { .. } => Some(Claim::Unreadable),
        Lookup::Found { record, now } => match transition::claim(Some(&record), ask, now).answer {
            Claim::Acquired(_) => None,
            answer => Some(answer),
        },
    }
}

/// Writes the claim if the key is absent; otherwise returns the stored value and the server that holds it.
async fn set_if_absent(
    router: &Router,
    owner: SlotOwner,
    key: &str,
    value: &[u8],
    keep_ms: u64,
    deadline: Deadline,
) -> Result<(Option<Vec<u8>>, Arc<ServerConnection>), StoreError> {
    let mut set = sized(7, key.len() + value.len());
    set.arg("SET").arg(key).arg(value).arg("NX").arg("GET").arg("PX").arg(keep_ms);
    let call = Call { op: OP, deadline, effect: Effect::Claim, key, body: CallBody::Command(&set) };
    let (found, server) = router.answer(&call, owner).await?;
    Ok((routing::read(OP, Effect::Claim, found)?, server))
}

/// The answer from a stored value where the time does not matter: an outcome is final, and a record that has expired by the
/// server's clock is not returned.
fn replay(server: &ServerConnection, ask: &ClaimRequest, key: &str, found: &[u8]) -> Option<Claim> {
    let id = &ask.key.id;
    let Some(stored) = Stored::open(key, found) else { return Some(Claim::Unreadable) };
    let now = server.time.at_most().max(stored.updated_at);
    if !stored.is_pinned() || stored.expires_at <= now {
        return None;
    }
    if stored.nonce != ask.nonce {
        match stored.fingerprint.matches(&ask.fingerprint) {
            Some(true) => {}
            Some(false) => return Some(Claim::Mismatch),
            None => return Some(Claim::Unreadable),
        }
    }
    let remaining = stored.expires_at.since(now);
    Some(stored.recorded(id).map_or(Claim::Unreadable, |recorded| Claim::Replay { recorded, remaining }))
}

async fn claim_by_script(
    router: &Router,
    ask: &ClaimRequest,
    key: &str,
    value: &[u8],
    deadline: Deadline,
) -> Result<Claim, StoreError> {
    let may_rerun: &[u8] = match ask.on_lapse {
        OnLapse::Rerun => b"1",
        OnLapse::Uncertain => b"0",
    };
    let attempts_max = ask.attempts_max.to_string();
    let call = Call {
        op: OP,
        deadline,
        effect: Effect::Claim,
        key,
        body: CallBody::Script(|scripts| &scripts.claim, &[value, may_rerun, attempts_max.as_bytes()]),
    };
    let reply: Vec<Value> = router.call(call).await?;
    read(ask, &reply).ok_or_else(|| CallFailure::Reply.error(OP, Effect::Claim))
}

/// Parses the script's reply; `None` if the script cannot have sent it.
fn read(ask: &ClaimRequest, reply: &[Value]) -> Option<Claim> {
    let id = &ask.key.id;
    Some(match reply {
        [word] => match bytes(word)? {
            b"unreadable" => Claim::Unreadable,
            b"mismatch" => Claim::Mismatch,
            _ => return None,
        },
        [word, Value::Int(number)] => match bytes(word)? {
            b"acquired" => acquired(ask, u32::try_from(*number).ok()?),
            b"busy" => Claim::Busy { lease_left: span(*number)? },
            _ => return None,
        },
        [word, holder, Value::Int(attempt), Value::Int(reason)] if bytes(word)? == b"uncertain" => {
            let fence = Fence { nonce: nonce(holder)?, attempt: u32::try_from(*attempt).ok()? };
            match u8::try_from(*reason).ok().and_then(layout::reason) {
                Some(reason) => Claim::Uncertain { fence, reason },
                None => Claim::Unreadable,
            }
        }
        [word, holder, outcome, Value::Int(remaining)] if bytes(word)? == b"replay" => {
            match layout::outcome(id, nonce(holder)?, bytes(outcome)?) {
                Ok(recorded) => Claim::Replay { recorded, remaining: span(*remaining)? },
                Err(_) => Claim::Unreadable,
            }
        }
        _ => return None,
    })
}

fn acquired(ask: &ClaimRequest, attempt: u32) -> Claim {
    let fence = Fence { nonce: ask.nonce, attempt };
    Claim::Acquired(Lease { id: ask.key.id, fence, length: ask.lease })
}

fn bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        _ => None,
    }
}

fn nonce(value: &Value) -> Option<Nonce> {
    bytes(value)?.try_into().ok().map(Nonce::from_bytes)
}

fn span(ms: i64) -> Option<std::time::Duration> {
    u64::try_from(ms).ok().map(|ms| Timestamp::from_millis(ms).since(Timestamp::default()))
}
