//! A payment provider in this process. The card chooses what happens.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::Notify;

use crate::Order;

/// Charges once for each key.
#[derive(Default)]
pub(crate) struct Provider {
    charges: Mutex<BTreeMap<String, u32>>,
    /// Notified when a slow card is charged.
    pub(crate) slow_charge_began: Notify,
    /// Notified when the charge of a slow card may end.
    pub(crate) end_slow_charge: Notify,
}

impl Provider {
    /// The name of the charge, or the reason why there is none.
    ///
    /// # Panics
    /// With the card `broken`: after the charge, before the caller has the result.
    pub(crate) async fn charge(&self, key: &str, order: &Order) -> Result<String, &'static str> {
        match order.card.as_str() {
            "empty" => return Err("no money on this card"),
            "slow" => {
                self.slow_charge_began.notify_one();
                let _ = tokio::time::timeout(Duration::from_secs(5), self.end_slow_charge.notified()).await;
            }
            _ => {}
        }
        let number = {
            let mut charges = self.charges.lock().expect("no code panics while it holds the lock");
            let number = charges.len() + 1;
            charges.insert(key.to_owned(), order.amount);
            number
        };
        if order.card == "broken" {
            panic!("the connection to the provider broke after the charge");
        }
        Ok(format!("ch_{number}"))
    }

    /// The number of charges and their sum.
    pub(crate) fn charged(&self) -> (usize, u32) {
        let charges = self.charges.lock().expect("no code panics while it holds the lock");
        (charges.len(), charges.values().sum())
    }
}
