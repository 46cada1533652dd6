//! [`Damage`]: the broken promises that an audit found, by kind.

use std::ops::AddAssign;

use hapax_core::Promise;

use super::args::SHOWN_MAX;
use crate::goal::Goal;

/// Broken promises, by kind.
#[derive(Clone, Default, Debug)]
pub struct Damage {
    /// Keys whose operation took effect more than once.
    pub doubles: Vec<String>,
    /// Acknowledged answers that later retries did not get, or that have no effect.
    pub lost: Vec<String>,
    /// Answers that the service never gave for their key.
    pub wrong: Vec<String>,
    /// Keys without a final answer.
    pub stuck: Vec<String>,
}

/// A broken promise about one key.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum AuditFault {
    Lost(String),
    Wrong(String),
    Stuck(String),
}

impl Damage {
    /// Every kind, and what was found of it.
    pub fn kinds(&self) -> [(&'static str, &[String]); 4] {
        let Self { doubles, lost, wrong, stuck } = self;
        [("doubles", doubles), ("lost", lost), ("wrong", wrong), ("stuck", stuck)]
    }

    /// Whether a subject with this promise rules the kind out. No promise excuses a wrong answer or a stuck key.
    pub fn is_promised(kind: &str, promise: Promise) -> bool {
        promise == Promise::AtMostOnce || !matches!(kind, "doubles" | "lost")
    }

    /// A goal of zero for each kind that is promised: `NAME-KIND`.
    pub fn goals(&self, name: &str, promise: Promise) -> Vec<Goal> {
        let goal = |(kind, found): (&str, &[String])| {
            Goal::at_most(&format!("{name}-{kind}"), found.len() as f64, 0.0)
        };
        self.promised(promise).map(goal).collect()
    }

    /// A line for each fault of a promised kind, `violated KIND SUBJECT: …`, up to [`SHOWN_MAX`] of a kind.
    pub fn violations(&self, subject: &str, promise: Promise) -> Vec<String> {
        let line = |kind: &str, fault: &String| format!("violated {kind} {subject}: {fault}");
        self.promised(promise)
            .flat_map(|(kind, found)| found.iter().take(SHOWN_MAX).map(move |fault| line(kind, fault)))
            .collect()
    }

    fn promised(&self, promise: Promise) -> impl Iterator<Item = (&'static str, &[String])> {
        self.kinds().into_iter().filter(move |(kind, _)| Self::is_promised(kind, promise))
    }

    /// Files a fault of a key under its kind.
    pub(crate) fn add_fault(&mut self, key: u64, fault: AuditFault) {
        let (kind, fault) = match fault {
            AuditFault::Lost(fault) => (&mut self.lost, fault),
            AuditFault::Wrong(fault) => (&mut self.wrong, fault),
            AuditFault::Stuck(fault) => (&mut self.stuck, fault),
        };
        kind.push(format!("key {key}: {fault}"));
    }
}

impl AddAssign for Damage {
    fn add_assign(&mut self, more: Self) {
        self.doubles.extend(more.doubles);
        self.lost.extend(more.lost);
        self.wrong.extend(more.wrong);
        self.stuck.extend(more.stuck);
    }
}
