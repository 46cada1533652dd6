//! The audit log: who did what to which record, when, why, and what came of it.
//!
//! An action is written down and synced before it is begun, and its result before it is answered, each as one line of
//! JSON at the end of a file. A line is never changed, and a file that is full is put aside. The latest entries are kept in
//! memory for reading; older ones are in the files. Only a store in memory has a log without a file, which ends with the
//! records that it is about.

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

/// How many entries can be read back. More are in the file.
const ENTRIES_MAX: usize = 2000;

/// What somebody wanted to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Action {
    /// Log in to the console.
    Login,
    /// Look at what is stored in a record.
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
    /// When it was asked for, in RFC 3339.
    pub(crate) at: String,
    /// The same in milliseconds since 1970.
    pub(crate) at_ms: u64,
    /// What whoever held the token called themselves.
    pub(crate) actor: String,
    /// The address they came from.
    pub(crate) address: String,
    /// `api` or `console`.
    pub(crate) via: String,
    /// What they wanted.
    pub(crate) action: Action,
    /// The record.
    #[schema(required)]
    pub(crate) id: Option<String>,
    /// Why, in their words.
    #[schema(required)]
    pub(crate) reason: Option<String>,
    /// `done`, or the code of the error. None: the process ended before it was known, look at the record.
    #[schema(required)]
    pub(crate) result: Option<String>,
}

/// What came of an action: the second line of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Ending {
    ended: u64,
    result: String,
}

/// A line of the file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Asked(Entry),
    Ended(Ending),
}

/// The log. Clones write to the same one.
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
    /// The log in `directory`, which is made if need be, or one in memory. A file gets no longer than `bytes_max`, but
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

    /// Writes down what is about to be done; answers with its number.
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
        self.write(Line::Asked(entry))
            .await
            .map_err(|error| not_written(error, "the action could not be written down, it was not begun"))?;
        Ok(number)
    }

    /// Writes down what came of it.
    pub(crate) async fn end(&self, number: u64, result: &str) -> Result<(), Failure> {
        self.write(Line::Ended(Ending { ended: number, result: result.to_owned() })).await.map_err(|error| {
            not_written(error, "the action was done, but not that it ended could be written")
        })
    }

    /// The file that lines are written to, where there is one.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        self.file.as_ref().map(LogFile::path)
    }

    /// The entries before the one numbered `before`, newest first.
    pub(crate) fn entries(&self, before: Option<u64>, limit: usize) -> Vec<Entry> {
        let recent = self.recent.lock();
        let older = recent.entries.iter().rev().filter(|entry| before.is_none_or(|end| entry.number < end));
        older.take(limit).cloned().collect()
    }

    /// Writes to this file from now on.
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
            Line::Asked(entry) => {
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
        .hint("name a directory that this user may write to: `audit_dir` in `[admin]`, or HAPAX_ADMIN_AUDIT_DIR")
}

fn not_written(error: std::io::Error, what: &str) -> Failure {
    Failure::new(Code::AuditFailed, what)
        .because(error)
        .hint("free space or mend the disk, look at the record, then repeat the action")
}

#[cfg(test)]
mod tests;
