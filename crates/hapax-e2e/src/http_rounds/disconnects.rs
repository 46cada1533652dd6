//! Clients that hang up, at every moment of an exchange.

use anyhow::Result;

use super::service::{CountingService, Pace, WAIT};
use crate::rig::http::{HttpConnection, HttpReply, keyed_post};

/// So long that a response takes several writes.
const ANSWER_BYTES: usize = 16 << 10;

/// What the rounds led to.
#[derive(Clone, Default, Debug)]
pub struct Disconnects {
    /// Rounds that were run.
    pub rounds: u64,
    /// Handlers that ran.
    pub executions: u64,
    /// First retries that got the lost response as a replay.
    pub replays: u64,
    /// Rounds with a lost or doubled operation.
    pub wrong: Vec<String>,
}

/// When a client hangs up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Moment {
    /// The request is written. The server may read it before the end of the connection or not.
    Sent,
    /// The handler runs.
    Running,
    /// The handler runs, and the client only closes its sending side.
    HalfClosed,
    /// The first bytes of the response have been read.
    Answered,
}

const MOMENTS: [Moment; 4] = [Moment::Sent, Moment::Running, Moment::HalfClosed, Moment::Answered];

/// In each round a client sends a request and hangs up, and another one sends the request twice more.
///
/// # Errors
/// When the service stops answering.
pub async fn disconnects(rounds: u64) -> Result<Disconnects> {
    let service = CountingService::start(Pace::Permits, ANSWER_BYTES)?;
    let mut retries = HttpConnection::open(service.address).await?;
    let mut sum = Disconnects { rounds, ..Disconnects::default() };
    for (round, moment) in (1..=rounds).zip(MOMENTS.into_iter().cycle()) {
        let key = format!("round-{round}");
        let request = keyed_post(WAIT, &key, &key);
        hang_up(&service, &request, moment).await?;
        let (first, second) = (retries.exchange(&request).await?, retries.exchange(&request).await?);
        let executions = service.counts().executions;
        sum.replays += u64::from(first.is_replay);
        if executions != round || !is_right(round, moment, &first, &second) {
            let body = String::from_utf8_lossy(&first.body[..first.body.len().min(100)]).into_owned();
            sum.wrong.push(format!(
                "round {round}, {moment:?}: {executions} executions, then {} (replay: {}) {body}",
                first.status, first.is_replay
            ));
        }
    }
    sum.executions = service.counts().executions;
    Ok(sum)
}

/// Sends the request, hangs up at that moment, and lets the handler return.
async fn hang_up(service: &CountingService, request: &[u8], moment: Moment) -> Result<()> {
    let before = service.counts();
    let mut client = HttpConnection::open(service.address).await?;
    client.send(request).await?;
    match moment {
        Moment::Sent => drop(client),
        Moment::Running | Moment::HalfClosed => {
            service.until(|counts| counts.executions > before.executions).await?;
            if moment == Moment::HalfClosed {
                client.half_close().await?;
            } else {
                drop(client);
            }
            service.until(|counts| counts.dropped > before.dropped).await?;
        }
        Moment::Answered => {
            service.permit();
            client.head().await?;
            return Ok(());
        }
    }
    service.permit();
    Ok(())
}

fn is_right(round: u64, moment: Moment, first: &HttpReply, second: &HttpReply) -> bool {
    let expected = format!("round-{round} execution {round} ");
    let is_answer = |reply: &HttpReply| {
        reply.status == 201 && reply.body.len() == ANSWER_BYTES && reply.body.starts_with(expected.as_bytes())
    };
    let is_replay = first.is_replay || moment == Moment::Sent;
    is_answer(first) && is_replay && second.is_replay && second.body == first.body && second.status == 201
}
