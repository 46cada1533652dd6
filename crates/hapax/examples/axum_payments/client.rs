//! A client that sends each request twice and prints the responses.

use std::net::SocketAddr;

use axum::http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use crate::provider::Provider;
use crate::{BoxError, Order};

/// One response of the service.
struct ShopResponse {
    status: StatusCode,
    replayed: bool,
    body: Value,
}

#[derive(Clone)]
struct Shop {
    client: Client<HttpConnector, Full<Bytes>>,
    address: SocketAddr,
}

impl Shop {
    async fn pay(&self, key: Option<&str>, order: &Order) -> Result<ShopResponse, BoxError> {
        let mut request = Request::post(format!("http://{}/payments", self.address))
            .header("content-type", "application/json");
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let request = request.body(Full::from(serde_json::to_vec(order)?))?;
        let response = self.client.request(request).await?;
        let status = response.status();
        let replayed = response.headers().contains_key("x-idempotent-replayed");
        let body = serde_json::from_slice(&response.into_body().collect().await?.to_bytes())?;
        Ok(ShopResponse { status, replayed, body })
    }
}

/// Prints a response and checks that it is the expected one.
fn expect(answer: &ShopResponse, status: u16, replayed: bool) {
    let said = match answer.body["type"].as_str() {
        Some(problem) => {
            format!("{} ({})", answer.body["title"], problem.rsplit('/').next().unwrap_or(problem))
        }
        None => answer.body.to_string(),
    };
    println!("  {}{} {said}", answer.status, if answer.replayed { ", replayed:" } else { ":" });
    assert_eq!((answer.status.as_u16(), answer.replayed), (status, replayed));
}

/// Sends payments in every way in which they can fail.
pub(crate) async fn show(address: SocketAddr, provider: &Provider) -> Result<(), BoxError> {
    let shop = Shop { client: Client::builder(TokioExecutor::new()).build_http(), address };
    let order =
        |card: &str| Order { item: format!("a book by {card} card"), amount: 42, card: card.to_owned() };
    let good = order("good");

    println!("Paid, and retried because the response may have been lost: one charge.");
    let first = shop.pay(Some("order-1"), &good).await?;
    expect(&first, 201, false);
    let again = shop.pay(Some("order-1"), &good).await?;
    expect(&again, 201, true);
    assert_eq!(first.body, again.body);
    assert_eq!(provider.charged(), (1, 42));

    println!("The same key with another amount: refused as a mistake of the client.");
    expect(&shop.pay(Some("order-1"), &Order { amount: 43, ..order("good") }).await?, 422, false);

    println!("No key: this route requires one.");
    expect(&shop.pay(None, &good).await?, 400, false);

    println!("A refusal by the provider is final as well.");
    expect(&shop.pay(Some("order-2"), &order("empty")).await?, 402, false);
    expect(&shop.pay(Some("order-2"), &order("empty")).await?, 402, true);

    println!("Two at a time: one runs, the other is refused as in progress.");
    let running = tokio::spawn({
        let (shop, order) = (shop.clone(), order("slow"));
        async move { shop.pay(Some("order-3"), &order).await }
    });
    provider.slow_charge_began.notified().await;
    expect(&shop.pay(Some("order-3"), &order("slow")).await?, 409, false);
    provider.end_slow_charge.notify_one();
    expect(&running.await??, 201, false);
    expect(&shop.pay(Some("order-3"), &order("slow")).await?, 201, true);
    assert_eq!(provider.charged(), (2, 84));

    println!("The handler panics after the charge. The outcome is unknown, so the payment is not run again.");
    expect(&shop.pay(Some("order-4"), &order("broken")).await?, 500, false);
    expect(&shop.pay(Some("order-4"), &order("broken")).await?, 409, false);

    let (charges, sum) = provider.charged();
    println!("{charges} charges for three orders, {sum} in total.");
    assert_eq!((charges, sum), (3, 126));
    Ok(())
}
