//! [`Row`]: the runs on one store, as a row of the promise table with its bound, and as goals.

use std::fmt;

use super::{Doses, Setting};
use crate::goal::Goal;
use crate::rig::{Damage, LoadReport};

/// The figures of one store.
#[derive(Clone, Debug)]
pub struct Row {
    setting: Setting,
    doses: Doses,
    report: LoadReport,
}

impl Row {
    /// A store without runs.
    pub fn new(setting: Setting) -> Self {
        Self { setting, doses: Doses::default(), report: LoadReport::default() }
    }

    /// Adds one run.
    pub fn add(&mut self, doses: Doses, report: LoadReport) {
        self.doses += doses.of(self.setting);
        self.report += report;
    }

    /// Goals of zero for what is promised.
    pub fn goals(&self) -> Vec<Goal> {
        let name = format!("chaos-{}", self.setting.name());
        self.report.damage.goals(&name, self.setting.promise())
    }

    /// The broken promises, a line each.
    pub fn violations(&self) -> Vec<String> {
        self.report.damage.violations(self.setting.name(), self.setting.promise())
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { setting, doses, report } = self;
        writeln!(f, "{}", setting.about())?;
        writeln!(f, "  {}", report.load_line())?;
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
        writeln!(f, "  {}", report.settlement_line())?;
        for (kind, found) in report.damage.kinds() {
            let is_promised = Damage::is_promised(kind, setting.promise());
            let promise = if is_promised { "promised 0" } else { "not promised" };
            writeln!(f, "  {kind}: {} ({promise}; {})", found.len(), Bound::of(found.len(), doses.total()))?;
        }
        Ok(())
    }
}

/// The rate of damage for each fault.
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
            Self::NoFaults => f.write_str("no faults were injected"),
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
