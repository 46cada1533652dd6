//! What was acknowledged, compared with what happened. Knows neither servers nor processes.

use std::collections::BTreeMap;
use std::ops::AddAssign;

/// An order that was acknowledged, with the number of its effect.
pub(super) type Answer = (String, i64);

/// What was seen.
#[derive(Clone, Default, Debug)]
pub struct Report {
    /// Different keys that were ordered.
    pub keys: usize,
    /// Orders that were acknowledged.
    pub answers: usize,
    /// How often somebody was killed.
    pub kills: usize,
    /// Keys that took effect more than once.
    pub doubles: Vec<String>,
    /// Keys that were acknowledged and took no effect.
    pub lost: Vec<String>,
    /// Answers that name another effect than that of their key.
    pub wrong: Vec<String>,
    /// Keys that nobody finished.
    pub stuck: Vec<String>,
}

impl Report {
    /// Judges what was told about `keys` by the numbers of the `effects` of each. Every key must come to an end.
    pub(super) fn of(keys: &[String], told: &[Answer], effects: &BTreeMap<String, Vec<i64>>) -> Self {
        let numbers = |key: &String| effects.get(key).map_or(&[][..], Vec::as_slice);
        let mut report = Self { keys: keys.len(), answers: told.len(), ..Self::default() };
        for key in keys {
            let is_told = told.iter().any(|(name, _)| name == key);
            match numbers(key) {
                [] if is_told => report.lost.push(key.clone()),
                [] => report.stuck.push(format!("{key} was never done")),
                [_] => {}
                several => report.doubles.push(format!("{key}: {several:?}")),
            }
        }
        for (key, number) in told {
            let numbers = numbers(key);
            if !numbers.is_empty() && !numbers.contains(number) {
                report.wrong.push(format!("{key}: told {number}, done {numbers:?}"));
            }
        }
        report
    }
}

impl AddAssign for Report {
    fn add_assign(&mut self, more: Self) {
        self.keys += more.keys;
        self.answers += more.answers;
        self.kills += more.kills;
        self.doubles.extend(more.doubles);
        self.lost.extend(more.lost);
        self.wrong.extend(more.wrong);
        self.stuck.extend(more.stuck);
    }
}

#[cfg(test)]
mod tests;
