//! Any tower service behind `hapax::service`.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use hapax::core::Format;
use hapax::service::IdempotentLayer;
use hapax::{Codec, Done, Hapax, MemoryStore, Once, OnceError};
use serde::Serialize;
use tower::{Layer, Service, ServiceExt, service_fn};

#[derive(Clone, Serialize)]
struct Job {
    id: &'static str,
    cents: u64,
}

const JOB: Job = Job { id: "job-1", cents: 5 };

fn hapax() -> Hapax {
    Hapax::new(MemoryStore::new())
}

fn described(hapax: &Hapax) -> impl Fn(&Job) -> Once + Clone + use<> {
    let hapax = hapax.clone();
    move |job: &Job| hapax.once("work", job.id).input(job)
}

#[tokio::test]
async fn a_request_runs_once_and_its_copies_get_its_result() {
    let runs = Arc::new(AtomicUsize::new(0));
    let worker = {
        let runs = runs.clone();
        service_fn(move |job: Job| {
            let run = runs.fetch_add(1, Ordering::SeqCst);
            async move { Ok::<_, Infallible>(format!("{} in run {run}", job.id)) }
        })
    };
    let hapax = hapax();
    let service = IdempotentLayer::new(described(&hapax)).layer(worker);
    let first = service.clone().oneshot(JOB).await.unwrap();
    let again = service.clone().oneshot(JOB).await.unwrap();
    assert_eq!(first, Done { value: "job-1 in run 0".to_owned(), replayed: false, recorded: true });
    assert_eq!(again, Done { replayed: true, ..first.clone() });
    let other = service.clone().oneshot(Job { cents: 6, ..JOB }).await;
    assert!(matches!(other, Err(OnceError::Mismatch)), "{other:?}");
    let two = service.oneshot(Job { id: "job-2", ..JOB }).await.unwrap();
    assert_eq!((two.value.as_str(), runs.load(Ordering::SeqCst)), ("job-2 in run 1", 2));

    let once = hapax.once("work", JOB.id).input(&JOB);
    let read = once.run(|_| async { Ok::<_, Infallible>("ran".to_owned()) }).await.unwrap();
    assert_eq!(read, Done { replayed: true, ..first });
}

#[tokio::test]
async fn an_error_releases_the_key() {
    let runs = Arc::new(AtomicUsize::new(0));
    let worker = {
        let runs = runs.clone();
        service_fn(move |_: Job| {
            let run = runs.fetch_add(1, Ordering::SeqCst);
            async move { if run == 0 { Err(std::io::Error::other("busy")) } else { Ok(run) } }
        })
    };
    let service = IdempotentLayer::new(described(&hapax())).layer(worker);
    let failed = service.clone().oneshot(JOB).await;
    assert!(matches!(failed, Err(OnceError::Failed(error)) if error.to_string() == "busy"));
    assert_eq!(service.oneshot(JOB).await.unwrap(), Done { value: 1, replayed: false, recorded: true });
}

#[tokio::test]
async fn the_handler_gets_the_context_of_its_run() {
    let worker = service_fn(|(job, cx): (Job, hapax::Context)| async move {
        Ok::<_, Infallible>((job.id.to_owned(), cx.effect_key("charge").as_str().to_owned(), cx.attempt()))
    });
    let hapax = hapax();
    let layer = IdempotentLayer::new(described(&hapax)).with_context(|job: Job, cx| (job, cx));
    let (job, key, attempt) = layer.layer(worker).oneshot(JOB).await.unwrap().value;
    let record = hapax::core::ScopedKey::new("work".into(), &hapax::Key::new(JOB.id).unwrap());
    let expected = hapax::Key::derive(&record.id.to_string(), "charge", None).unwrap();
    assert_eq!((job.as_str(), key.as_str(), attempt), (JOB.id, expected.as_str(), 1));
}

/// A type without serde.
#[derive(Clone, PartialEq, Debug)]
struct Receipt(u8);

#[derive(Clone)]
struct ReceiptBytes;

impl Codec<Receipt> for ReceiptBytes {
    const FORMAT: Format = Format(200);

    fn encode(&self, value: &Receipt) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(vec![value.0])
    }

    fn decode(&self, bytes: &[u8]) -> Result<Receipt, Box<dyn std::error::Error + Send + Sync>> {
        match bytes {
            [byte] => Ok(Receipt(*byte)),
            _ => Err("not a receipt".into()),
        }
    }
}

#[tokio::test]
async fn a_codec_records_results_without_serde() {
    let hapax = hapax();
    let worker = service_fn(|job: Job| async move { Ok::<_, Infallible>(Receipt(job.cents as u8)) });
    let service = IdempotentLayer::new(described(&hapax)).codec(ReceiptBytes).layer(worker);
    assert!(!service.clone().oneshot(JOB).await.unwrap().replayed);
    let again = service.oneshot(JOB).await.unwrap();
    assert_eq!(again, Done { value: Receipt(5), replayed: true, recorded: true });

    let once = || hapax.once("work", JOB.id).input(&JOB);
    let as_json = once().run(|_| async { Ok::<_, Infallible>(1) }).await;
    assert!(matches!(as_json, Err(OnceError::ResultUnavailable { source: None })), "{as_json:?}");
    let as_bytes = once().run_with(ReceiptBytes, |_| async { Ok::<_, Infallible>(Receipt(9)) }).await;
    assert_eq!(as_bytes.unwrap().value, Receipt(5));
}

/// A service that is ready only after it was polled, and says so when it is called unready.
#[derive(Debug)]
struct Fuse {
    is_ready: bool,
}

impl Clone for Fuse {
    fn clone(&self) -> Self {
        Self { is_ready: false }
    }
}

impl Service<Job> for Fuse {
    type Response = u64;
    type Error = &'static str;
    type Future = std::future::Ready<Result<u64, &'static str>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> Poll<Result<(), &'static str>> {
        self.is_ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, job: Job) -> Self::Future {
        std::future::ready(if self.is_ready { Ok(job.cents) } else { Err("called before it was ready") })
    }
}

#[tokio::test]
async fn the_handler_is_called_only_when_it_is_ready() {
    let service = IdempotentLayer::new(described(&hapax())).layer(Fuse { is_ready: false });
    assert_eq!(service.oneshot(JOB).await.unwrap().value, 5);
}
