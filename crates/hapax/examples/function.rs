//! A payment that is retried until it goes through, and charged once.
//!
//! `cargo run -p hapax --example function`
#![allow(clippy::print_stdout, reason = "an example shows what happens")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hapax::{Fail, Hapax, MemoryStore, OnceError};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Debug)]
struct Receipt {
    charge: String,
    amount: u32,
}

/// A card network that is down at first, and counts its charges.
#[derive(Default)]
struct Network {
    calls: AtomicU32,
    charges: AtomicU32,
}

impl Network {
    fn charge(&self, key: &str, amount: u32) -> Result<Receipt, Fail<&'static str>> {
        if amount == 0 {
            return Err(Fail::permanent("nothing to charge"));
        }
        if self.calls.fetch_add(1, Ordering::SeqCst) < 2 {
            return Err("the network is busy")?;
        }
        self.charges.fetch_add(1, Ordering::SeqCst);
        Ok(Receipt { charge: key.to_owned(), amount })
    }
}

async fn pay(
    hapax: &Hapax,
    network: &Arc<Network>,
    order: &str,
    amount: u32,
) -> Result<hapax::Done<Receipt>, OnceError<&'static str>> {
    let network = network.clone();
    hapax
        .once("pay", format!("order:{order}"))
        .input(&amount)
        .retention(Duration::from_secs(7 * 24 * 3600))
        .run(move |cx| async move { network.charge(cx.effect_key("charge").as_str(), amount) })
        .await
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let hapax = Hapax::new(MemoryStore::new());
    let network = Arc::new(Network::default());

    // A client that retries every retryable error. Two attempts fail and release the key; the third charges.
    for attempt in 1..=5 {
        match pay(&hapax, &network, "123", 42).await {
            Ok(done) => println!("attempt {attempt}: {:?}, replayed: {}", done.value, done.replayed),
            Err(error) => println!("attempt {attempt}: {error}"),
        }
    }
    assert_eq!(network.charges.load(Ordering::SeqCst), 1);

    // The same key with another amount is refused, and a final error is replayed like a result.
    println!("another amount: {}", pay(&hapax, &network, "123", 43).await.expect_err("a mismatch"));
    for _ in 0..2 {
        println!("nothing to pay: {}", pay(&hapax, &network, "124", 0).await.expect_err("a final error"));
    }
    assert_eq!(network.charges.load(Ordering::SeqCst), 1);
}
