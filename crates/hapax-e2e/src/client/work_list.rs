//! [`WorkList`]: which calls were begun and how they ended, in a file that processes follow each other on.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result};
use parking_lot::Mutex;

/// How a call ended, as its caller was told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CallEnd {
    /// With an answer of the service.
    Answered,
    /// Uncertain, and only a person can settle it.
    Uncertain,
    /// Without a final answer; it may be made again.
    Open,
    /// With a definite refusal.
    Refused,
}

const WORDS: [(CallEnd, &str); 4] = [
    (CallEnd::Answered, "answered"),
    (CallEnd::Uncertain, "uncertain"),
    (CallEnd::Open, "open"),
    (CallEnd::Refused, "refused"),
];

/// What the list says.
#[derive(Clone, Default, Debug)]
pub(super) struct Noted {
    /// The last end of each call that was begun.
    pub(super) ends: BTreeMap<u64, Option<CallEnd>>,
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
    pub(super) fn begin(&self, call: u64) -> Result<()> {
        self.note(&format!("begin {call}"))
    }

    /// Notes how a call ended.
    pub(super) fn end(&self, call: u64, end: CallEnd) -> Result<()> {
        let word = WORDS.iter().find(|(known, _)| *known == end).map_or("", |(_, word)| word);
        self.note(&format!("end {call} {word}"))
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
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["process"] => noted.under_way.clear(),
            ["begin", call] => {
                let call = call.parse()?;
                noted.ends.entry(call).or_default();
                noted.under_way.push(call);
            }
            ["end", call, word] => {
                let call = call.parse()?;
                let end = WORDS.iter().find(|(_, known)| *known == word).map(|(end, _)| *end);
                noted.ends.insert(call, Some(end.with_context(|| format!("unknown end {word}"))?));
                noted.under_way.retain(|other| *other != call);
            }
            _ => anyhow::bail!("the work list has the line {line:?}"),
        }
    }
    Ok(noted)
}
