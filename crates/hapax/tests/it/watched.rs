//! Captures the logs and metrics of one thread.

use std::io::Write;
use std::sync::{Arc, Mutex};

use metrics_util::debugging::{DebuggingRecorder, Snapshotter};
use tracing::{Dispatch, Level};
use tracing_subscriber::fmt::format::FmtSpan;

/// Runs `scene`: its result, its logs at every level, and its metrics.
pub(crate) fn watch<T>(scene: impl FnOnce() -> T) -> (T, String, Snapshotter) {
    let (recorder, logs) = (DebuggingRecorder::new(), LogBuffer::default());
    let writer = logs.clone();
    let everything = || tracing_subscriber::fmt().with_max_level(Level::TRACE).with_ansi(false);
    let subscriber =
        everything().with_span_events(FmtSpan::FULL).with_writer(move || writer.clone()).finish();
    // Tests run on several threads. With a single subscriber, a thread without one that reaches a call site first
    // disables it for all; with a second subscriber the interest is evaluated per call.
    let _second = Dispatch::new(everything().with_writer(std::io::sink).finish());
    let value =
        metrics::with_local_recorder(&recorder, || tracing::subscriber::with_default(subscriber, scene));
    let text = String::from_utf8(logs.0.lock().unwrap().clone()).unwrap();
    (value, text, recorder.snapshotter())
}

#[derive(Clone, Default)]
struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
