//! One order, one killed service, and retries at the front until there is an answer.

use hapax_client::{Client, Key};

use super::BoxError;
use super::hold::Point;
use super::processes::{Chain, SERVICES};

/// Retries of an order until it is answered.
const RETRIES_MAX: u32 = 10;

/// Sends an order, kills a service while the order is in it, and retries the order.
pub(crate) async fn kill_with_an_order(
    chain: &mut Chain,
    number: usize,
    point: Point,
) -> Result<(), BoxError> {
    let name = SERVICES[number];
    let order = format!("a book, {name} killed at {point:?}");
    println!("Order: {order}.");
    chain.restart(number, Some(point))?;
    let front = tokio::spawn(send_until_answered(chain.shop(), order.clone()));
    chain.until_held(number)?;
    chain.restart(number, None)?;
    println!("  {}", front.await??);
    println!("  sent once more: {}", send_until_answered(chain.shop(), order.clone()).await?);
    let entries = chain.entries_of(&order)?;
    println!("  entries in the ledger: {entries}");
    assert_eq!(entries, 1);
    Ok(())
}

/// Sends an order with the same key until a service answers.
async fn send_until_answered(shop: String, order: String) -> Result<String, BoxError> {
    let client = Client::new();
    let key = Key::derive(&order, "order", None)?;
    for _ in 0..RETRIES_MAX {
        match client.post(&shop).key(key.clone()).body(order.clone()).send().await {
            Ok(response) if response.status().is_success() => {
                let (attempts, replayed) = (response.attempts(), response.replayed());
                return Ok(format!("answered, attempts: {attempts}, replayed: {replayed}"));
            }
            Ok(response) => return Err(format!("the shop answered {}", response.status()).into()),
            Err(error) => println!("  {error}; sent again with the same key"),
        }
    }
    Err("the order has no answer".into())
}
