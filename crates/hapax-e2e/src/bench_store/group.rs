//! Group commit around any [`Layout`]: many callers, one channel, one writer thread, one fsync for all waiting callers.
//!
//! The file store works the same way. Giving the baseline the same batching makes their ratio one of layouts, not
//! of harnesses.

use std::thread::JoinHandle;

use anyhow::{Context, Result};
use tokio::sync::{mpsc, oneshot};

use super::layout::{Id, Layout, Stored, Write};

/// The most operations that share one commit; as in the file store.
pub const BATCH_MAX: usize = 1024;

enum Call {
    Apply(Write, oneshot::Sender<Result<(), String>>),
    Read(Id, oneshot::Sender<Result<Option<Stored>, String>>),
}

/// A layout behind its writer thread. Dropping it ends the thread once everything sent has been answered.
#[derive(Debug)]
pub struct Group {
    calls: Option<mpsc::Sender<Call>>,
    writer: Option<JoinHandle<()>>,
}

impl Group {
    /// Starts the writer thread.
    pub fn start(layout: Box<dyn Layout>) -> Self {
        let (calls, waiting) = mpsc::channel(4 * BATCH_MAX);
        let writer = std::thread::spawn(move || write_all(layout, waiting));
        Self { calls: Some(calls), writer: Some(writer) }
    }

    /// Applies one write; durable when it returns.
    pub async fn apply(&self, write: Write) -> Result<()> {
        let (answer, answered) = oneshot::channel();
        self.send(Call::Apply(write, answer)).await?;
        answered.await.context("the writer thread ended")?.map_err(anyhow::Error::msg)
    }

    /// What is stored for `id`.
    pub async fn read(&self, id: Id) -> Result<Option<Stored>> {
        let (answer, answered) = oneshot::channel();
        self.send(Call::Read(id, answer)).await?;
        answered.await.context("the writer thread ended")?.map_err(anyhow::Error::msg)
    }

    async fn send(&self, call: Call) -> Result<()> {
        let calls = self.calls.as_ref().context("the group was closed")?;
        calls.send(call).await.ok().context("the writer thread ended")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.calls = None;
        if let Some(writer) = self.writer.take() {
            // The panic of a writer is already printed.
            let _ = writer.join();
        }
    }
}

fn write_all(mut layout: Box<dyn Layout>, mut waiting: mpsc::Receiver<Call>) {
    let mut calls = Vec::with_capacity(BATCH_MAX);
    let mut writes = Vec::with_capacity(BATCH_MAX);
    let mut answers = Vec::with_capacity(BATCH_MAX);
    while waiting.blocking_recv_many(&mut calls, BATCH_MAX) > 0 {
        for call in calls.drain(..) {
            match call {
                Call::Apply(write, answer) => {
                    writes.push(write);
                    answers.push(answer);
                }
                Call::Read(id, answer) => {
                    let _ = answer.send(layout.read(&id).map_err(|error| format!("{error:#}")));
                }
            }
        }
        if writes.is_empty() {
            continue;
        }
        let applied = layout.apply(&writes).map_err(|error| format!("{error:#}"));
        writes.clear();
        for answer in answers.drain(..) {
            let _ = answer.send(applied.clone());
        }
    }
}
