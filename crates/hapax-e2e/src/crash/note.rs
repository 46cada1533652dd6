//! What a child process says about its work, one line each: what it begins, and what it was told.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Result, bail};

/// What is asked of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Claim a key.
    Claim,
    /// Extend the lease.
    Renew,
    /// Pin the outcome.
    Complete,
    /// Free the key.
    Release,
}

/// One operation on one key. Everything else about it follows from these numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Act {
    /// What is asked.
    pub step: Step,
    /// Of which key.
    pub key: u64,
    /// As which attempt.
    pub attempt: u32,
}

/// One line of a child process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Note {
    /// The store is open; work begins.
    Ready,
    /// The act is about to be asked for.
    Begin(Act),
    /// The act was acknowledged.
    Done(Act),
    /// The act was refused, and certainly not applied; the word says how.
    Refused(Act, String),
    /// Nobody knows whether the act was applied.
    Unknown(Act),
    /// The store answered what it must not answer.
    Wrong(Act, String),
}

impl Step {
    const ALL: [Self; 4] = [Self::Claim, Self::Renew, Self::Complete, Self::Release];

    const fn name(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Renew => "renew",
            Self::Complete => "complete",
            Self::Release => "release",
        }
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.step.name(), self.key, self.attempt)
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => f.write_str("ready"),
            Self::Begin(act) => write!(f, "begin {act}"),
            Self::Done(act) => write!(f, "done {act}"),
            Self::Refused(act, how) => write!(f, "refused {act} {how}"),
            Self::Unknown(act) => write!(f, "unknown {act}"),
            Self::Wrong(act, what) => write!(f, "wrong {act} {what}"),
        }
    }
}

impl FromStr for Note {
    type Err = anyhow::Error;

    fn from_str(line: &str) -> Result<Self> {
        if line == "ready" {
            return Ok(Self::Ready);
        }
        let mut words = line.splitn(5, ' ');
        let mut word = || words.next().with_context(|| format!("a note is cut short: {line}"));
        let kind = word()?;
        let step = word()?;
        let step = Step::ALL.into_iter().find(|known| known.name() == step);
        let act = Act {
            step: step.with_context(|| format!("a note names no step: {line}"))?,
            key: word()?.parse()?,
            attempt: word()?.parse()?,
        };
        let rest = word().unwrap_or_default().to_owned();
        Ok(match kind {
            "begin" => Self::Begin(act),
            "done" => Self::Done(act),
            "refused" => Self::Refused(act, rest),
            "unknown" => Self::Unknown(act),
            "wrong" => Self::Wrong(act, rest),
            _ => bail!("not a note: {line}"),
        })
    }
}
