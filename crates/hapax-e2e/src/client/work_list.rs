//! [`WorkList`]: which calls were begun and how they ended, in a file that processes follow each other on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use hapax_client::Key;
use parking_lot::Mutex;

/// How a call ended, as its caller was told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum CallEnd {
    /// With an answer of the service.
    Answered(CallAnswer),
    /// Uncertain, and only a person can settle it.
    Uncertain,
    /// Without a final answer; it may be made again.
    Open,
    /// With a definite refusal.
    Refused,
}

/// What a caller got.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct CallAnswer {
    pub(super) status: u16,
    pub(super) body: String,
}

/// What the list says.
#[derive(Clone, Default, Debug)]
pub(super) struct Noted {
    /// The last end of each call that was begun.
    pub(super) ends: BTreeMap<u64, Option<CallEnd>>,
    /// The key with which each call was begun last.
    pub(super) keys: BTreeMap<u64, Key>,
    /// All different answers of each call.
    pub(super) answers: BTreeMap<u64, BTreeSet<CallAnswer>>,
    /// How often a call was continued from the journal.
    pub(super) resumed: u64,
    /// The calls that the latest process has begun and not ended.
    pub(super) under_way: Vec<u64>,
}

impl Noted {
    /// Whether a call may still be made.
    pub(super) fn is_unfinished(&self, call: u64) -> bool {
        matches!(self.ends.get(&call), None | Some(None | Some(CallEnd::Open)))
    }
}

/// The open list of one process. Each note is one write, so that a killed process leaves whole lines.
#[derive(Debug)]
pub(super) struct WorkList(Mutex<File>);

impl WorkList {
    /// Opens the list and notes that a process has begun.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = File::options().append(true).create(true).open(path);
        let list = Self(Mutex::new(file.context("the work list cannot be opened")?));
        list.note("process")?;
        Ok(list)
    }

    /// Notes that a call begins.
    pub(super) fn begin(&self, call: u64, key: &Key) -> Result<()> {
        self.note(&format!("begin {call} {}", key.as_str()))
    }

    /// Notes that a call was continued from the journal.
    pub(super) fn resumed(&self, call: u64) -> Result<()> {
        self.note(&format!("resumed {call}"))
    }

    /// Notes how a call ended.
    pub(super) fn end(&self, call: u64, end: &CallEnd) -> Result<()> {
        match end {
            CallEnd::Answered(CallAnswer { status, body }) => {
                self.note(&format!("end {call} answered {status} {body}"))
            }
            CallEnd::Uncertain => self.note(&format!("end {call} uncertain")),
            CallEnd::Open => self.note(&format!("end {call} open")),
            CallEnd::Refused => self.note(&format!("end {call} refused")),
        }
    }

    /// The parent counts these lines to choose the moment of a kill.
    #[allow(clippy::print_stdout, reason = "the parent reads the notes")]
    fn note(&self, line: &str) -> Result<()> {
        let mut file = self.0.lock();
        file.write_all(format!("{line}\n").as_bytes())?;
        println!("{line}");
        Ok(())
    }
}

/// Reads the list; a list that does not exist is empty.
pub(super) fn read(path: &Path) -> Result<Noted> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Noted::default()),
        Err(error) => return Err(error).context("the work list cannot be read"),
    };
    let mut noted = Noted::default();
    for line in text.lines() {
        noted.add(line)?;
    }
    Ok(noted)
}

impl Noted {
    fn add(&mut self, line: &str) -> Result<()> {
        // A body is the rest of its line.
        let words: Vec<&str> = line.splitn(5, ' ').collect();
        let end = match words[..] {
            ["process"] => {
                self.under_way.clear();
                return Ok(());
            }
            ["resumed", _] => {
                self.resumed += 1;
                return Ok(());
            }
            ["begin", call, key] => {
                let call = call.parse()?;
                self.ends.entry(call).or_default();
                self.keys.insert(call, Key::new(key)?);
                self.under_way.push(call);
                return Ok(());
            }
            ["end", _, "answered", status, body] => {
                CallEnd::Answered(CallAnswer { status: status.parse()?, body: body.to_owned() })
            }
            ["end", _, "uncertain"] => CallEnd::Uncertain,
            ["end", _, "open"] => CallEnd::Open,
            ["end", _, "refused"] => CallEnd::Refused,
            _ => bail!("the work list has the line {line:?}"),
        };
        let call = words[1].parse()?;
        if let CallEnd::Answered(answer) = &end {
            self.answers.entry(call).or_default().insert(answer.clone());
        }
        self.ends.insert(call, Some(end));
        self.under_way.retain(|other| *other != call);
        Ok(())
    }
}
