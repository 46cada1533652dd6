use std::io::Write;
use std::sync::Arc;

use super::*;

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The log lines of a scene.
async fn logged(scene: impl AsyncFnOnce(&Outage)) -> Vec<String> {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).without_time();
    let subscriber = subscriber.with_writer(move || writer.clone()).finish();
    // With a second subscriber, the interest cache is rebuilt for every thread.
    let _second = tracing::Dispatch::new(tracing_subscriber::fmt().with_writer(std::io::sink).finish());
    let _here = tracing::subscriber::set_default(subscriber);
    scene(&Outage::new("the service is down", "the service is up again")).await;
    let text = String::from_utf8(lines.0.lock().clone()).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn an_outage_logs_one_line_at_its_begin_and_one_at_its_end() {
    let lines = logged(async |outage| {
        outage.succeeded();
        for _ in 0..100 {
            outage.failed(&"no route to host");
        }
        tokio::time::advance(Duration::from_secs(90)).await;
        for _ in 0..100 {
            outage.succeeded();
        }
    })
    .await;
    let [begins, ends] = &lines[..] else { panic!("{lines:#?}") };
    assert!(
        begins.contains("WARN") && begins.contains("the service is down error=no route to host"),
        "{begins}"
    );
    assert!(
        ends.contains("WARN") && ends.contains("the service is up again seconds=90 failures=100"),
        "{ends}"
    );
}

#[tokio::test(start_paused = true)]
async fn intermittent_failures_are_one_outage() {
    let lines = logged(async |outage| {
        for _ in 0..100 {
            outage.failed(&"late");
            tokio::time::advance(Duration::from_millis(500)).await;
            outage.succeeded();
        }
    })
    .await;
    assert_eq!(lines.len(), 1, "{lines:#?}");
    let two = logged(async |outage| {
        for _ in 0..2 {
            outage.failed(&"down");
            tokio::time::advance(QUIET).await;
            outage.succeeded();
        }
    })
    .await;
    assert_eq!(two.len(), 4, "a new outage is logged again: {two:#?}");
}
