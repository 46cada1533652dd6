//! [`Durable`]: the proof that a delivery may be acknowledged.

use hapax_core::RecordId;

/// The proof that the outcome of an event is recorded; see [`Delivery::ack`](super::Delivery::ack).
///
/// Only this crate makes one, after the store has confirmed an outcome or has answered with an earlier one. An adapter
/// passes it on, and cannot make it:
///
/// ```
/// use hapax::events::{Delivery, Durable};
///
/// async fn acknowledge(delivery: impl Delivery, proof: Durable) {
///     delivery.ack(proof).await.ok();
/// }
/// ```
///
/// ```compile_fail
/// use hapax::events::{Delivery, Durable};
///
/// async fn acknowledge(delivery: impl Delivery, record: hapax::core::RecordId) {
///     // The field is private, and there is no public constructor.
///     delivery.ack(Durable { record }).await.ok();
/// }
/// ```
///
/// One proof acknowledges one delivery: it is neither `Clone` nor `Default`.
///
/// ```compile_fail
/// use hapax::events::{Delivery, Durable};
///
/// async fn acknowledge(first: impl Delivery, second: impl Delivery, proof: Durable) {
///     first.ack(proof.clone()).await.ok();
///     second.ack(proof).await.ok();
/// }
/// ```
#[derive(Debug)]
pub struct Durable {
    record: RecordId,
}

impl Durable {
    /// To be called only after the store has confirmed or replayed a pinned outcome of this record (V-02, V-03).
    pub(crate) fn recorded(record: RecordId) -> Self {
        Self { record }
    }

    /// The record that holds the outcome.
    pub fn record(&self) -> RecordId {
        self.record
    }
}
