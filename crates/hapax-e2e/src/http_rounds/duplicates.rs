//! Identical requests at the same time.

use anyhow::Result;

use super::client::{Client, Told, order};
use super::service::{NOW, Pace, Service, WAIT};

/// Identical requests in a round, each on its own connection.
pub const DUPLICATES: usize = 50;

/// What the rounds came to.
#[derive(Clone, Default, Debug)]
pub struct Duplicates {
    /// Rounds that were run.
    pub rounds: u64,
    /// Handlers that ran.
    pub executions: u64,
    /// Duplicates that were given the first one's answer.
    pub replays: u64,
    /// Duplicates that were told to come back.
    pub conflicts: u64,
    /// Rounds in which somebody was told something wrong.
    pub wrong: Vec<String>,
}

/// Sends every request from all connections at once, in turn where duplicates are told at once and where they wait.
///
/// # Errors
/// When the service stops answering.
pub async fn duplicates(rounds: u64) -> Result<Duplicates> {
    let service = Service::start(Pace::Arrivals(DUPLICATES as u64), 0).await?;
    let mut clients = Vec::with_capacity(DUPLICATES);
    for _ in 0..DUPLICATES {
        clients.push(Client::open(service.address).await?);
    }
    let mut sum = Duplicates { rounds, ..Duplicates::default() };
    for round in 0..rounds {
        let path = if round % 2 == 0 { NOW } else { WAIT };
        let request = order(path, &format!("round-{round}"));
        for client in &mut clients {
            client.send(&request).await?;
        }
        let mut told = Vec::with_capacity(DUPLICATES);
        for client in &mut clients {
            told.push(client.told().await?);
        }
        sum.replays += told.iter().filter(|told| told.is_replay).count() as u64;
        sum.conflicts += told.iter().filter(|told| told.status == 409).count() as u64;
        if let Err(fault) = judge(&told, path == WAIT) {
            sum.wrong.push(format!("round {round} on {path}: {fault}"));
        }
    }
    sum.executions = service.seen().executions;
    Ok(sum)
}

/// One answer of the handler's own; everybody else has the same, marked, or is told to come back where nobody waits.
fn judge(told: &[Told], is_waiting: bool) -> Result<(), String> {
    let mut first = told.iter().filter(|told| told.status == 201 && !told.is_replay);
    let (Some(first), None) = (first.next(), first.next()) else {
        return Err("not one answer of a handler's own".to_owned());
    };
    for told in told {
        let is_same = told.status == 201 && told.body == first.body;
        let is_conflict = told.status == 409 && !is_waiting && !told.is_replay;
        if !is_same && !is_conflict {
            return Err(format!("told {} {}", told.status, String::from_utf8_lossy(&told.body)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
