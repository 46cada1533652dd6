//! A handful of measurements of the same thing.

use std::fmt;

/// What several rounds measured.
#[derive(Clone, Debug, Default)]
pub struct Sample(Vec<f64>);

impl Sample {
    /// Adds one round.
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
        self.0.sort_by(f64::total_cmp);
    }

    /// The one in the middle; not a number when there is none.
    pub fn median(&self) -> f64 {
        self.0.get(self.0.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// From the lowest to the highest, in percent of the median.
    pub fn spread_percent(&self) -> f64 {
        match &self.0[..] {
            [lowest, .., highest] => 100.0 * (highest - lowest) / self.median(),
            _ => 0.0,
        }
    }
}

impl FromIterator<f64> for Sample {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        Self(values)
    }
}

/// As a rate: thousands a second, with the spread.
impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:.1}k ±{:.0}%", self.median() / 1000.0, self.spread_percent() / 2.0))
    }
}
