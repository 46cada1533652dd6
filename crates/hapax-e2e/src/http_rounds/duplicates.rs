//! Concurrent identical requests.

use anyhow::Result;

use super::service::{CountingService, NOW, Pace, WAIT};
use crate::rig::http::{HttpConnection, HttpReply, keyed_post};

/// Identical requests in a round, each on its own connection.
pub const DUPLICATES: usize = 50;

/// What the rounds led to.
#[derive(Clone, Default, Debug)]
pub struct Duplicates {
    /// Rounds that were run.
    pub rounds: u64,
    /// Handlers that ran.
    pub executions: u64,
    /// Duplicates that got the first one's response.
    pub replays: u64,
    /// Duplicates that got a conflict.
    pub conflicts: u64,
    /// Rounds with a wrong response.
    pub wrong: Vec<String>,
}

/// Sends every request on all connections, by turns to the path where duplicates get a conflict and to the one where they
/// wait.
///
/// # Errors
/// When the service stops answering.
pub async fn duplicates(rounds: u64) -> Result<Duplicates> {
    let service = CountingService::start(Pace::Arrivals(DUPLICATES as u64), 0)?;
    let mut clients = Vec::with_capacity(DUPLICATES);
    for _ in 0..DUPLICATES {
        clients.push(HttpConnection::open(service.address).await?);
    }
    let mut sum = Duplicates { rounds, ..Duplicates::default() };
    for round in 0..rounds {
        let path = if round % 2 == 0 { NOW } else { WAIT };
        let key = format!("round-{round}");
        let request = keyed_post(path, &key, &key);
        for client in &mut clients {
            client.send(&request).await?;
        }
        let mut replies = Vec::with_capacity(DUPLICATES);
        for client in &mut clients {
            replies.push(client.reply().await?);
        }
        sum.replays += replies.iter().filter(|reply| reply.is_replay).count() as u64;
        sum.conflicts += replies.iter().filter(|reply| reply.status == 409).count() as u64;
        if let Err(fault) = check_round(&replies, path == WAIT) {
            sum.wrong.push(format!("round {round} on {path}: {fault}"));
        }
    }
    sum.executions = service.counts().executions;
    Ok(sum)
}

/// Exactly one response is of an execution. Every other one has its body, or is a conflict where duplicates do not wait.
fn check_round(replies: &[HttpReply], is_waiting: bool) -> Result<(), String> {
    let mut first = replies.iter().filter(|reply| reply.status == 201 && !reply.is_replay);
    let (Some(first), None) = (first.next(), first.next()) else {
        return Err("not exactly one response of an execution".to_owned());
    };
    for reply in replies {
        let is_same = reply.status == 201 && reply.body == first.body;
        let is_conflict = reply.status == 409 && !is_waiting && !reply.is_replay;
        if !is_same && !is_conflict {
            return Err(format!("got {} {}", reply.status, String::from_utf8_lossy(&reply.body)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
