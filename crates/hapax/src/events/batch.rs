//! [`Consumer::batch`] and [`Consumer::invoke`]: events within one invocation of a function, which has an end.

use std::fmt;
use std::time::{Duration, SystemTime};

use futures_util::future::join_all;
use tokio::time::Instant;

use super::consumer::Consumer;
use super::event::Event;
use super::handle::{Handled, Stay, Told};
use super::lambda::{SqsBatch, SqsBatchResponse};
use super::order::Turn;
use super::router::Router;

/// The part of the time that is left which is kept for the answer, as a divisor, and its maximum.
const RESERVE_PART: u32 = 10;
const RESERVE_MAX: Duration = Duration::from_millis(500);

/// An event has no outcome yet: the platform is to deliver it again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotHandled;

impl fmt::Display for NotHandled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the event has no outcome yet; deliver it again")
    }
}

impl std::error::Error for NotHandled {}

impl Consumer {
    /// Processes a batch of SQS until `until`, the deadline of the invocation, and answers which messages SQS is to deliver
    /// again: every message has an answer of its own (V-11). In a FIFO group, those behind a message that is delivered again
    /// are delivered again too.
    ///
    /// A key that is in progress elsewhere is waited for in place, and so is a back-off, as long as there is time. Let the
    /// lease be at most a third of the function's timeout: then an invocation can take over from one that died.
    ///
    /// The event source mapping has to report batch item failures, or Lambda deletes the whole batch.
    pub async fn batch<S>(&self, batch: SqsBatch, router: &Router<S>, until: SystemTime) -> SqsBatchResponse
    where
        S: Clone + Send + Sync + 'static,
    {
        let stay = self.stay_until(until);
        let taken: Vec<(String, Event, Option<Turn>)> = batch
            .records
            .iter()
            .map(|message| {
                let event = Event::from(message);
                let turn = self.turn(&event);
                (message.message_id.clone(), event, turn)
            })
            .collect();
        let handled = join_all(taken.into_iter().map(|(id, event, turn)| {
            let stay = &stay;
            async move {
                let handled = self.handle_within(&event, router, turn, stay).await;
                (handled == Handled::GivenBack).then_some(id)
            }
        }));
        SqsBatchResponse::failed(handled.await.into_iter().flatten())
    }

    /// Processes one event until `until`, the deadline of the invocation. A dead letter is not an error: the record keeps
    /// it.
    ///
    /// # Errors
    /// [`NotHandled`] when it has no outcome yet. Return it, so that the platform delivers the event again.
    pub async fn invoke<S>(
        &self,
        event: Event,
        router: &Router<S>,
        until: SystemTime,
    ) -> Result<Handled, NotHandled>
    where
        S: Clone + Send + Sync + 'static,
    {
        let turn = self.turn(&event);
        match self.handle_within(&event, router, turn, &self.stay_until(until)).await {
            Handled::GivenBack => Err(NotHandled),
            handled => Ok(handled),
        }
    }

    async fn handle_within<S>(
        &self,
        event: &Event,
        router: &Router<S>,
        turn: Option<Turn>,
        stay: &Stay,
    ) -> Handled
    where
        S: Clone + Send + Sync + 'static,
    {
        let _in_hand = self.shared.take_in_hand();
        // The proof is of no use here: the platform acknowledges by the answer.
        match self.conclude_event(event, None, router, turn, stay).await {
            Told::Acked(_proof, handled) => handled,
            Told::GivenBack => Handled::GivenBack,
        }
    }

    /// Until then on the clock of the runtime, with a reserve for the answer.
    fn stay_until(&self, until: SystemTime) -> Stay {
        let left = until.duration_since(SystemTime::now()).unwrap_or_default();
        let until = Instant::now() + left - (left / RESERVE_PART).min(RESERVE_MAX);
        Stay { stop: self.shared.stop.clone(), until: Some(until) }
    }
}
