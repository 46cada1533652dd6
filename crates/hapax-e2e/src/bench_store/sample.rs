//! [`Sample`]: several measurements of one figure.

use std::fmt;

use anyhow::Result;

/// The measurements of several rounds.
#[derive(Clone, Debug, Default)]
pub struct Sample(Vec<f64>);

impl Sample {
    /// Adds one round.
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
        self.0.sort_by(f64::total_cmp);
    }

    /// The measurement below which this part of them lie; not a number when there is none.
    pub fn quantile(&self, part: f64) -> f64 {
        let at = (self.0.len() as f64 * part) as usize;
        self.0.get(at).or(self.0.last()).copied().unwrap_or(f64::NAN)
    }

    /// The middle measurement.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// The difference of the highest and the lowest, in percent of the median.
    pub fn spread_percent(&self) -> f64 {
        match &self.0[..] {
            [lowest, .., highest] => 100.0 * (highest - lowest) / self.median(),
            _ => 0.0,
        }
    }
}

/// Measures so many rounds, numbered from 1, after a warm-up round with number 0.
///
/// # Errors
/// When a round cannot be measured.
pub fn after_warm_up<T>(rounds: u64, mut measure: impl FnMut(u64) -> Result<T>) -> Result<Vec<T>> {
    measure(0)?;
    (1..=rounds).map(measure).collect()
}

impl FromIterator<f64> for Sample {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        Self(values)
    }
}

/// As a rate: thousands per second, with the spread.
impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:.1}k ±{:.0}%", self.median() / 1000.0, self.spread_percent() / 2.0))
    }
}
