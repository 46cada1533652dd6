//! The audit log: the operator, the action, the record, the time, the reason and the result.
//!
//! An action is written and synced before it begins, its result before the response, each as one line of JSON at the end
//! of a file. Lines are never changed, and a full file is rotated. The latest entries are also in memory; older ones are
//! in the files only. For a store in memory the log has no file and is lost together with the records.

mod file;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hapax_core::{Clock, SystemClock, Timestamp};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use self::file::LogFile;
use super::auth::Actor;
use crate::failure::{Code, Failure};
use crate::time::rfc3339;

/// The most entries in memory.
const ENTRIES_MAX: usize = 2000;

/// A logged action.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Action {
    /// Log in to the console.
    Login,
    /// Read the stored result of a record.
    ShowPayload,
    /// Settle a record as applied.
    SettleApplied,
    /// Settle a record as not applied.
    SettleNotApplied,
    /// Free the key of an uncertain record.
    Release,
    /// Remove a record.
    Delete,
}

/// One action.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = AuditEntry)]
pub(crate) struct Entry {
    /// Counts up, one for each action.
    pub(crate) number: u64,
    /// The time of the request, in RFC 3339.
    pub(crate) at: String,
    /// The same in milliseconds since 1970.
    pub(crate) at_ms: u64,
    /// The self-declared name of the operator.
    pub(crate) actor: String,
    /// The network address of the client.
    pub(crate) address: String,
    /// `api` or `console`.
    pub(crate) via: String,
    /// The action.
    pub(crate) action: Action,
    /// The record.
    #[schema(required)]
    pub(crate) id: Option<String>,
    /// The reason that the operator gave.
    #[schema(required)]
    pub(crate) reason: Option<String>,
    /// `done`, or the code of the error. None if the process ended before the result was known: check the record.
    #[schema(required)]
    pub(crate) result: Option<String>,
}

/// The result of an action: its second line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Ending {
    ended: u64,
    result: String,
}

/// A line of the file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Started(Entry),
    Ended(Ending),
}

/// The log. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Audit {
    recent: Arc<Mutex<Recent>>,
    file: Option<LogFile>,
}

#[derive(Debug)]
struct Recent {
    entries: VecDeque<Entry>,
    next_number: u64,
}

impl Audit {
    /// The log in `directory`, which is created if it does not exist, or in memory. A file has at most `bytes_max`, except
    /// for its first line.
    pub(crate) fn open(directory: Option<&Path>, bytes_max: u64) -> Result<Self, Failure> {
        let mut recent = Recent { entries: VecDeque::new(), next_number: 1 };
        let open = |directory: &Path| {
            LogFile::open(directory, bytes_max, |line| recent.take(line))
                .map_err(|error| not_opened(error, directory))
        };
        let file = directory.map(open).transpose()?;
        Ok(Self { recent: Arc::new(Mutex::new(recent)), file })
    }

    /// Writes the start of an action and returns its number.
    pub(crate) async fn begin(
        &self,
        actor: &Actor,
        action: Action,
        id: Option<String>,
        reason: Option<String>,
    ) -> Result<u64, Failure> {
        let entry = {
            let mut recent = self.recent.lock();
            let number = recent.next_number;
            recent.next_number += 1;
            Entry { number, action, id, reason, ..Entry::by(actor, SystemClock::new().now()) }
        };
        let number = entry.number;
        self.write(Line::Started(entry)).await.map_err(|error| {
            not_written(error, "the audit log cannot be written, so the action was not performed")
        })?;
        Ok(number)
    }

    /// Writes the result of an action.
    pub(crate) async fn end(&self, number: u64, result: &str) -> Result<(), Failure> {
        self.write(Line::Ended(Ending { ended: number, result: result.to_owned() })).await.map_err(|error| {
            not_written(error, "the action was performed, but its result cannot be written to the audit log")
        })
    }

    /// The file of the log, if there is one.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        self.file.as_ref().map(LogFile::path)
    }

    /// The entries before the one numbered `before`, newest first.
    pub(crate) fn entries(&self, before: Option<u64>, limit: usize) -> Vec<Entry> {
        let recent = self.recent.lock();
        let older = recent.entries.iter().rev().filter(|entry| before.is_none_or(|end| entry.number < end));
        older.take(limit).cloned().collect()
    }

    /// Replaces the file of the log.
    #[cfg(test)]
    pub(crate) fn write_to(&self, file: std::fs::File) {
        self.file.as_ref().expect("it has a file").write_to(file);
    }

    async fn write(&self, line: Line) -> std::io::Result<()> {
        match &self.file {
            Some(file) => {
                let mut text = serde_json::to_vec(&line)?;
                text.push(b'\n');
                file.append(text).await?;
            }
            None => tracing::info!(target: "hapax::audit", line = ?line, "audit"),
        }
        self.recent.lock().take(line);
        Ok(())
    }
}

impl Entry {
    fn by(actor: &Actor, now: Timestamp) -> Self {
        Self {
            number: 0,
            at: rfc3339(now).unwrap_or_default(),
            at_ms: now.as_millis(),
            actor: actor.name.clone(),
            address: actor.address.clone(),
            via: actor.via.name().to_owned(),
            action: Action::Login,
            id: None,
            reason: None,
            result: None,
        }
    }
}

impl Recent {
    fn take(&mut self, line: Line) {
        match line {
            Line::Started(entry) => {
                self.next_number = self.next_number.max(entry.number.saturating_add(1));
                self.entries.push_back(entry);
                if self.entries.len() > ENTRIES_MAX {
                    self.entries.pop_front();
                }
            }
            Line::Ended(Ending { ended, result }) => {
                self.next_number = self.next_number.max(ended.saturating_add(1));
                if let Some(entry) = self.entries.iter_mut().rev().find(|entry| entry.number == ended) {
                    entry.result = Some(result);
                }
            }
        }
    }
}

fn not_opened(error: std::io::Error, directory: &Path) -> Failure {
    Failure::new(Code::AuditFailed, format!("cannot open the audit log in {}", directory.display()))
        .because(error)
        .hint(
            "use a directory that this user can write to: `audit_dir` in `[admin]`, or HAPAX_ADMIN_AUDIT_DIR",
        )
}

fn not_written(error: std::io::Error, what: &str) -> Failure {
    Failure::new(Code::AuditFailed, what)
        .because(error)
        .hint("free space or repair the disk, check the record, then repeat the action")
}

#[cfg(test)]
mod tests;
