//! Three services in a chain: shop, payments, ledger. Each has the idempotency layer and calls the next with
//! `hapax-client` under `cx.effect_key(..)`, so that a retry at the front reaches every service with the same keys.
//!
//! `cargo run -p hapax-client --example chain` starts each as a process, kills one after the other while an order is in it,
//! retries the order, and ends.
#![allow(clippy::print_stdout, reason = "an example shows what happens")]

mod hold;
mod processes;
mod services;
mod story;

use std::process::Command;

use hold::Point;
use processes::{Chain, SERVICES};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    if processes::is_service() {
        return processes::serve().await;
    }
    let folder = std::env::temp_dir().join(format!("hapax-chain-{}", std::process::id()));
    let program = || Ok(Command::new(std::env::current_exe()?));
    let mut chain = Chain::start(&folder, program)?;
    for number in (0..SERVICES.len()).rev() {
        story::kill_with_an_order(&mut chain, number, Point::AfterEffect).await?;
    }
    drop(chain);
    std::fs::remove_dir_all(folder)?;
    Ok(())
}
