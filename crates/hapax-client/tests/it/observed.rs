//! What a call leaves in metrics and logs.

use std::io;
use std::sync::{Arc, Mutex};

use hapax_client::Key;
use metrics_exporter_prometheus::PrometheusBuilder;

use crate::server::{Server, Step, client, problem, status};

#[tokio::test]
async fn calls_attempts_and_retries_are_counted() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    let _local = metrics::set_default_local_recorder(&recorder);

    let script = [status(503), Step::CloseRead, status(200), problem(409, "uncertain", &[])];
    let server = Server::with(script).await;
    client().post(server.url("/")).send().await.unwrap();
    client().post(server.url("/")).send().await.unwrap_err();

    let counted = handle.render();
    for line in [
        "hapax_client_calls_total{outcome=\"answered\"} 1",
        "hapax_client_calls_total{outcome=\"uncertain\"} 1",
        "hapax_client_attempts_total 4",
        "hapax_client_retries_total{reason=\"status\"} 1",
        "hapax_client_retries_total{reason=\"transport\"} 1",
    ] {
        assert!(counted.contains(line), "{line} is not in\n{counted}");
    }
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn logs_contain_no_key_and_no_body() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    // For all threads: one of its own would miss events whose call sites other tests have used before.
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let server = Server::with([status(503), Step::CloseRead, status(200)]).await;
    let key = Key::new("order-4711-secret").unwrap();
    client().post(server.url("/?token=hidden")).key(key.clone()).body("card 4242").send().await.unwrap();

    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let own: Vec<&str> = log.lines().filter(|line| line.contains("hapax_client")).collect();
    assert!(own.iter().any(|line| line.contains(&format!("{key:?}"))), "{log}");
    for secret in ["4711", "4242", "hidden"] {
        assert!(own.iter().all(|line| !line.contains(secret)), "{secret} is in\n{log}");
    }
}
