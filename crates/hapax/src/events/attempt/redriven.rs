//! What a consumer does with the dead letter that a redriven event names (V-07).

use hapax_core::{Lookup, Record, StoreError};

use super::Keyed;
use crate::events::consumer::Consumer;
use crate::events::dead_letter;

impl Consumer {
    /// Removes the dead letter from the record of the event's own key, if it is the one that was redriven: the broker
    /// holds the event now. Whether it was removed is of no interest, because the key is claimed again: an older copy of a
    /// redriven event finds the newer dead letter, and a cache that held the dead letter has forgotten it.
    pub(super) async fn let_go(&self, keyed: &Keyed) -> Result<(), StoreError> {
        let Some(header) = keyed.redrive else { return Ok(()) };
        self.hapax.delete_attempt(&keyed.id, header.nonce).await.map(drop)
    }

    /// Removes the dead letter that was redriven where it is in another record: that of a key that could not be used. To be
    /// called once the event has an outcome. A failure leaves a dead letter too many, which can be redriven again.
    pub(in crate::events) async fn forget_redriven(&self, keyed: &Keyed) {
        let Some(header) = keyed.redrive else { return };
        let Some(record) = header.record.filter(|record| *record != keyed.id) else { return };
        let calls = &self.hapax.engine.calls;
        let found = calls.once("get", calls.timeout, calls.store.get(&record)).await;
        let Ok(Lookup::Found { record, .. }) = found else { return };
        // A producer can name any record; only the nonce of a dead letter of this consumer removes it.
        if record.fence.nonce == header.nonce
            && self.is_dead_letter_of_mine(&record)
            && let Err(error) = self.hapax.delete(&record).await
        {
            tracing::warn!(id = %record.key.id, %error, "failed to remove a dead letter whose event was processed");
        }
    }

    fn is_dead_letter_of_mine(&self, record: &Record) -> bool {
        record.key.scope == self.scope && record.recorded().is_some_and(dead_letter::is_dead_letter)
    }
}
