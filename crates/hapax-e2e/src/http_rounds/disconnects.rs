//! Clients that hang up, at every moment of an exchange.

use anyhow::Result;

use super::client::{Client, Told, order};
use super::service::{Pace, Service, WAIT};

/// Enough that an answer is on its way for a while.
const ANSWER_BYTES: usize = 16 << 10;

/// What the rounds came to.
#[derive(Clone, Default, Debug)]
pub struct Disconnects {
    /// Rounds that were run.
    pub rounds: u64,
    /// Handlers that ran.
    pub executions: u64,
    /// First retries that were given the lost answer.
    pub replays: u64,
    /// What was lost or doubled.
    pub wrong: Vec<String>,
}

/// When a client goes away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Moment {
    /// The request is written. Whether the server read it before it saw the end, is up to the server.
    Sent,
    /// The handler runs.
    Running,
    /// The handler runs, and the client only says that it will send no more.
    HalfClosed,
    /// The first bytes of the answer have come.
    Answered,
}

const MOMENTS: [Moment; 4] = [Moment::Sent, Moment::Running, Moment::HalfClosed, Moment::Answered];

/// In each round a client sends an order and goes away, and another one asks for its answer, twice.
///
/// # Errors
/// When the service stops answering.
pub async fn disconnects(rounds: u64) -> Result<Disconnects> {
    let service = Service::start(Pace::Permits, ANSWER_BYTES).await?;
    let mut retries = Client::open(service.address).await?;
    let mut sum = Disconnects { rounds, ..Disconnects::default() };
    for (round, moment) in (1..=rounds).zip(MOMENTS.into_iter().cycle()) {
        let request = order(WAIT, &format!("round-{round}"));
        go_away(&service, &request, moment).await?;
        let (first, second) = (retries.ask(&request).await?, retries.ask(&request).await?);
        let executions = service.seen().executions;
        sum.replays += u64::from(first.is_replay);
        if executions != round || !is_right(round, moment, &first, &second) {
            let body = String::from_utf8_lossy(&first.body[..first.body.len().min(100)]).into_owned();
            sum.wrong.push(format!(
                "round {round}, {moment:?}: {executions} executions, then {} (replay: {}) {body}",
                first.status, first.is_replay
            ));
        }
    }
    sum.executions = service.seen().executions;
    Ok(sum)
}

/// Sends the order, goes away at that moment, and lets the handler go on.
async fn go_away(service: &Service, request: &[u8], moment: Moment) -> Result<()> {
    let before = service.seen();
    let mut client = Client::open(service.address).await?;
    client.send(request).await?;
    match moment {
        Moment::Sent => drop(client),
        Moment::Running | Moment::HalfClosed => {
            service.until(|seen| seen.executions > before.executions).await?;
            if moment == Moment::HalfClosed {
                client.half_close().await?;
            } else {
                drop(client);
            }
            service.until(|seen| seen.gone > before.gone).await?;
        }
        Moment::Answered => {
            service.go();
            client.head().await?;
            return Ok(());
        }
    }
    service.go();
    Ok(())
}

fn is_right(round: u64, moment: Moment, first: &Told, second: &Told) -> bool {
    let expected = format!("order round-{round} execution {round} ");
    let is_answer = |told: &Told| {
        told.status == 201 && told.body.len() == ANSWER_BYTES && told.body.starts_with(expected.as_bytes())
    };
    let is_replay = first.is_replay || moment == Moment::Sent;
    is_answer(first) && is_replay && second.is_replay && second.body == first.body && second.status == 201
}
