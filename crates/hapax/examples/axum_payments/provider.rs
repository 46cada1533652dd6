//! A payment provider that lives in this process. What happens is up to the card.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::Notify;

use crate::Order;

/// Takes money, once for each key it is given.
#[derive(Default)]
pub(crate) struct Provider {
    charges: Mutex<BTreeMap<String, u32>>,
    /// A slow card has been asked for.
    pub(crate) asked: Notify,
    /// A slow card need not take its time any more.
    pub(crate) hurry: Notify,
}

impl Provider {
    /// The name of the charge, or why there is none.
    ///
    /// # Panics
    /// With the card `broken`: after the money was taken, and before anybody could be told.
    pub(crate) async fn charge(&self, key: &str, order: &Order) -> Result<String, &'static str> {
        match order.card.as_str() {
            "empty" => return Err("no money on this card"),
            "slow" => {
                self.asked.notify_one();
                let _ = tokio::time::timeout(Duration::from_secs(5), self.hurry.notified()).await;
            }
            _ => {}
        }
        let number = {
            let mut charges = self.charges.lock().expect("no charge panics while it is written down");
            let number = charges.len() + 1;
            charges.insert(key.to_owned(), order.amount);
            number
        };
        if order.card == "broken" {
            panic!("the connection to the provider broke after the charge");
        }
        Ok(format!("ch_{number}"))
    }

    /// How many charges there are, and how much they come to.
    pub(crate) fn charged(&self) -> (usize, u32) {
        let charges = self.charges.lock().expect("no charge panics while it is written down");
        (charges.len(), charges.values().sum())
    }
}
