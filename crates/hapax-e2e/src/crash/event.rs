//! [`ChildEvent`]: the lines that a child process prints about its operations.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Result, bail};

/// A kind of store operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OperationKind {
    /// Claim a key.
    Claim,
    /// Extend the lease.
    Renew,
    /// Pin the outcome.
    Complete,
    /// Free the key.
    Release,
}

/// One operation on one key. Its payload and nonce are derived from these numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operation {
    /// Its kind.
    pub kind: OperationKind,
    /// The number of its key.
    pub key: u64,
    /// The attempt that it belongs to.
    pub attempt: u32,
}

/// One line of a child process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChildEvent {
    /// The store is open; work begins.
    Ready,
    /// The operation is about to be sent.
    Begin(Operation),
    /// The operation was acknowledged.
    Done(Operation),
    /// The operation was refused and not applied. The word is the kind of error.
    Refused(Operation, String),
    /// It is unknown whether the operation was applied.
    Unknown(Operation),
    /// The store broke its contract.
    Wrong(Operation, String),
}

impl OperationKind {
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

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.kind.name(), self.key, self.attempt)
    }
}

impl fmt::Display for ChildEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => f.write_str("ready"),
            Self::Begin(operation) => write!(f, "begin {operation}"),
            Self::Done(operation) => write!(f, "done {operation}"),
            Self::Refused(operation, how) => write!(f, "refused {operation} {how}"),
            Self::Unknown(operation) => write!(f, "unknown {operation}"),
            Self::Wrong(operation, what) => write!(f, "wrong {operation} {what}"),
        }
    }
}

impl FromStr for ChildEvent {
    type Err = anyhow::Error;

    fn from_str(line: &str) -> Result<Self> {
        if line == "ready" {
            return Ok(Self::Ready);
        }
        let mut words = line.splitn(5, ' ');
        let mut word = || words.next().with_context(|| format!("the line is cut short: {line}"));
        let event = word()?;
        let kind = word()?;
        let kind = OperationKind::ALL.into_iter().find(|known| known.name() == kind);
        let operation = Operation {
            kind: kind.with_context(|| format!("the line names no operation: {line}"))?,
            key: word()?.parse()?,
            attempt: word()?.parse()?,
        };
        let rest = word().unwrap_or_default().to_owned();
        Ok(match event {
            "begin" => Self::Begin(operation),
            "done" => Self::Done(operation),
            "refused" => Self::Refused(operation, rest),
            "unknown" => Self::Unknown(operation),
            "wrong" => Self::Wrong(operation, rest),
            _ => bail!("not an event: {line}"),
        })
    }
}
