use std::sync::Arc;

use parking_lot::Mutex;

use super::*;

#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Buffer {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().clone()).unwrap()
    }
}

#[test]
fn the_line_is_overwritten_and_ended() {
    let buffer = Buffer::default();
    let mut progress = Progress::to(buffer.clone());
    progress.show("1 record so far");
    progress.show("2 records so far");
    drop(progress);
    assert_eq!(buffer.text(), "\r1 record so far\r2 records so far\n");
    drop(Progress::to(buffer.clone()));
    assert!(buffer.text().ends_with("far\n"), "nothing shown, nothing ended");
}

#[tokio::test]
async fn the_line_is_updated_while_work_runs() {
    let buffer = Buffer::default();
    let (written, watched) = (buffer.clone(), buffer.clone());
    let until_shown = async move {
        while written.text().is_empty() {
            tokio::task::yield_now().await;
        }
        "done"
    };
    assert_eq!(Progress::to(watched).during("reading", until_shown).await, "done");
    assert!(
        buffer.text().starts_with("\rreading: ") && buffer.text().ends_with("so far\n"),
        "{}",
        buffer.text()
    );
}
