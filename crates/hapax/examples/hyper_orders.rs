//! The layer around a plain hyper server: no framework, HTTP/1.1.
//!
//! `cargo run -p hapax --example hyper_orders` shows a replay and ends. With `-- --serve 127.0.0.1:3000` it keeps
//! serving for `curl`.
#![allow(clippy::print_stdout, reason = "an example shows what happens")]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};

use hapax::http::{IdempotencyLayer, Protection, RequestBody};
use hapax::{Context, Hapax, MemoryStore};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::{Request, Response, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tower::{Layer as _, service_fn};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

static ORDERS: AtomicU32 = AtomicU32::new(0);

/// Creates an order from the text of the body.
async fn create(request: Request<RequestBody<Incoming>>) -> Result<Response<Full<Bytes>>, Infallible> {
    let attempt = Protection::of(request.extensions()).and_then(Protection::context).map(Context::attempt);
    let answer = match request.into_body().collect().await {
        Ok(item) => {
            let number = ORDERS.fetch_add(1, Ordering::SeqCst) + 1;
            let item = String::from_utf8_lossy(&item.to_bytes()).into_owned();
            println!("    (server) order {number} for {item}, attempt {attempt:?}");
            (StatusCode::CREATED, format!("order {number}: {item}\n"))
        }
        // Without a key the layer has not read the body, so the client may disconnect in the middle of it.
        Err(_) => (StatusCode::BAD_REQUEST, String::new()),
    };
    let mut response = Response::new(Full::from(answer.1));
    *response.status_mut() = answer.0;
    Ok(response)
}

async fn serve(listener: TcpListener) -> Result<(), BoxError> {
    let hapax = Hapax::new(MemoryStore::new());
    let service = IdempotencyLayer::new(&hapax).layer(service_fn(create));
    loop {
        let (stream, _) = listener.accept().await?;
        let service = TowerToHyperService::new(service.clone());
        // When a client disconnects only its connection ends: its request still runs to completion.
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn show(address: SocketAddr) -> Result<(), BoxError> {
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    for (key, item, status) in [
        (Some("a"), "book", 201),
        (Some("a"), "book", 201),
        (Some("a"), "pen", 422),
        (Some("b"), "pen", 201),
        (None, "pen", 201),
        (None, "pen", 201),
    ] {
        let mut request = Request::post(format!("http://{address}/orders"));
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let response = client.request(request.body(Full::from(item))?).await?;
        let replayed = response.headers().contains_key("x-idempotent-replayed");
        println!("  key {key:?}, {item}: {}, replayed: {replayed}", response.status());
        assert_eq!(response.status(), status);
        response.into_body().collect().await?;
    }
    println!("{} orders: two with keys, and two from a client without keys", ORDERS.load(Ordering::SeqCst));
    assert_eq!(ORDERS.load(Ordering::SeqCst), 4);
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let address = listener.local_addr()?;
            tokio::spawn(serve(listener));
            show(address).await
        }
        ["--serve", address] => {
            let listener = TcpListener::bind(address).await?;
            println!("orders are taken at http://{}/", listener.local_addr()?);
            serve(listener).await
        }
        _ => Err("the only argument is `--serve ADDRESS`".into()),
    }
}
