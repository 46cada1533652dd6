//! [`Row`]: what was seen of one store, as a row of the promise table with its bound, and as goals.

use std::fmt;

use hapax_core::Promise;

use super::{Doses, Setting};
use crate::goal::Goal;
use crate::witness::Report;

/// Faults of a kind that are shown; the rest are counted.
const SHOWN_MAX: usize = 20;

/// The figures of one store.
#[derive(Clone, Debug)]
pub struct Row {
    setting: Setting,
    doses: Doses,
    report: Report,
}

impl Row {
    /// A store of which nothing was seen yet.
    pub fn new(setting: Setting) -> Self {
        Self { setting, doses: Doses::default(), report: Report::default() }
    }

    /// Adds what one run saw.
    pub fn add(&mut self, doses: Doses, report: Report) {
        self.doses += doses.of(self.setting);
        self.report += report;
    }

    /// The kinds of damage, with what was found of each.
    fn damage(&self) -> [(&'static str, &[String]); 4] {
        let Report { doubles, lost, wrong, stuck, .. } = &self.report;
        [("doubles", doubles), ("lost", lost), ("wrong", wrong), ("stuck", stuck)]
    }

    /// Whether the store promises that there is none of it. Nothing excuses a wrong answer or a stuck key.
    fn is_promised(&self, kind: &str) -> bool {
        self.setting.promise() == Promise::AtMostOnce || !matches!(kind, "doubles" | "lost")
    }

    /// What must be zero.
    pub fn goals(&self) -> Vec<Goal> {
        let promised = self.damage().into_iter().filter(|(kind, _)| self.is_promised(kind));
        let goal = |(kind, found): (&str, &[String])| {
            Goal::at_most(&format!("chaos-{}-{kind}", self.setting.name()), found.len() as f64, 0.0)
        };
        promised.map(goal).collect()
    }

    /// The damage that was promised not to be, a line each: `violated KIND …`.
    pub fn violations(&self) -> Vec<String> {
        let promised = self.damage().into_iter().filter(|(kind, _)| self.is_promised(kind));
        let line = |kind: &str, fault: &String| format!("violated {kind} {}: {fault}", self.setting.name());
        promised
            .flat_map(|(kind, found)| found.iter().take(SHOWN_MAX).map(move |fault| line(kind, fault)))
            .collect()
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { setting, doses, report } = self;
        writeln!(f, "{}", setting.about())?;
        writeln!(
            f,
            "  {} requests with {} keys, {} retries, {} hang-ups, {} replays, {} answers not recorded",
            report.requests, report.keys, report.retries, report.hang_ups, report.replays, report.unrecorded
        )?;
        write!(
            f,
            "  {} kills, {} pauses, {} bad networks, {} clock steps",
            doses.kills, doses.pauses, doses.cuts, doses.clock_steps
        )?;
        let own = [
            (doses.restarts, setting.crash()),
            (doses.pooler_restarts, "crashes of the pooler"),
            (doses.moves, "moves of slots"),
        ];
        for (count, what) in own {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        writeln!(f)?;
        writeln!(
            f,
            "  {} keys were uncertain: {} settled as applied, {} as not applied",
            report.uncertain, report.applied, report.not_applied
        )?;
        for (kind, found) in self.damage() {
            let judged = if self.is_promised(kind) { "promised 0" } else { "not promised" };
            writeln!(f, "  {kind}: {} ({judged}; {})", found.len(), Bound::of(found.len(), doses.in_all()))?;
        }
        Ok(())
    }
}

/// What so many cases in so many faults say about the next ones.
enum Bound {
    NoFaults,
    /// None in so many: the rate is below three in that number, 19 times in 20.
    Below(u64),
    Measured(usize, u64),
}

impl Bound {
    fn of(found: usize, faults: u64) -> Self {
        match (found, faults) {
            (_, 0) => Self::NoFaults,
            (0, faults) => Self::Below(faults),
            (found, faults) => Self::Measured(found, faults),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFaults => f.write_str("nothing was done that could cause any"),
            Self::Below(faults) => {
                write!(
                    f,
                    "none in {faults} faults: below {:.4} for each, with 95 % confidence",
                    (3.0 / *faults as f64).min(1.0)
                )
            }
            Self::Measured(found, faults) => {
                write!(f, "{found} in {faults} faults: {:.4} for each", *found as f64 / *faults as f64)
            }
        }
    }
}

#[cfg(test)]
mod tests;
