//! What `hapax-client` adds to a POST on the loopback interface: `cargo xtask bench client`.
#![allow(clippy::print_stdout, reason = "the figures are what this program is for")]

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::post;
use axum::serve::ListenerExt;
use clap::Parser;
use hapax_client::Client;
use hapax_e2e::goal::{self, Goal};
use tokio::net::TcpListener;
use tokio::runtime;

/// The median time that a call of hapax-client takes longer than one of bare reqwest.
#[derive(Parser)]
struct Args {
    /// Pairs of rounds: one of bare calls and one of calls of the client, in alternating order.
    #[arg(long, default_value_t = 100)]
    rounds: usize,
    /// Calls in a round, one after the other on one connection.
    #[arg(long, default_value_t = 200)]
    calls: usize,
}

/// What every call sends.
const BODY: &str = r#"{"item":"book","count":2}"#;
/// Rounds before those that count.
const WARM_UP: usize = 5;

fn main() -> ExitCode {
    let args = Args::parse();
    let url = format!("http://{}/orders", serve());
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be built").block_on(measure(&args, &url))
}

/// A service on a thread of its own.
fn serve() -> SocketAddr {
    let (bound, address) = mpsc::channel();
    thread::spawn(move || {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime can be built").block_on(async {
            let app: Router = Router::new().route("/orders", post(|| async { r#"{"id":1}"# }));
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
            bound.send(listener.local_addr().expect("it is bound")).expect("the address is waited for");
            let listener = listener.tap_io(|stream| {
                // Without it, small answers wait for acknowledgements.
                let _ = stream.set_nodelay(true);
            });
            axum::serve(listener, app).await.expect("the service does not end");
        });
    });
    address.recv().expect("the service is started")
}

async fn measure(args: &Args, url: &str) -> ExitCode {
    let http = || {
        let builder = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
        builder.retry(reqwest::retry::never()).build().expect("TLS can be set up")
    };
    let bare = http();
    let client = Client::builder().http(http()).build().expect("there is no journal to open");
    let mut pairs = Vec::with_capacity(args.rounds);
    for round in 0..WARM_UP + args.rounds {
        let is_bare_first = round % 2 == 0;
        let first = if is_bare_first {
            bare_round(args, &bare, url).await
        } else {
            client_round(args, &client, url).await
        };
        let second = if is_bare_first {
            client_round(args, &client, url).await
        } else {
            bare_round(args, &bare, url).await
        };
        if round >= WARM_UP {
            pairs.push(if is_bare_first { (first, second) } else { (second, first) });
        }
    }
    let bare = median(pairs.iter().map(|(bare, _)| micros(*bare)).collect());
    let added = median(pairs.iter().map(|(bare, client)| micros(*client) - micros(*bare)).collect());
    println!("bare reqwest: {bare:.1} µs for each call; hapax-client adds {added:.1} µs");
    goal::print(&[Goal::at_most("client-added-us", added, 15.0)])
}

/// The median time of a bare call.
async fn bare_round(args: &Args, http: &reqwest::Client, url: &str) -> Duration {
    let mut times = Vec::with_capacity(args.calls);
    for _ in 0..args.calls {
        let began = Instant::now();
        let request = http.post(url).header("content-type", "application/json").body(BODY);
        let answer = request.send().await.expect("the service answers").bytes().await;
        times.push(began.elapsed());
        assert_eq!(answer.expect("the answer is complete").len(), 8);
    }
    median_time(times)
}

/// The median time of a call of the client.
async fn client_round(args: &Args, client: &Client, url: &str) -> Duration {
    let mut times = Vec::with_capacity(args.calls);
    for _ in 0..args.calls {
        let began = Instant::now();
        let request = client.post(url).header("content-type", "application/json").body(BODY);
        let answer = request.send().await.expect("the service answers").bytes().await;
        times.push(began.elapsed());
        assert_eq!(answer.expect("the answer is complete").len(), 8);
    }
    median_time(times)
}

fn median_time(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
