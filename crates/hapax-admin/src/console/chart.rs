//! Charts as SVG paths.

use std::fmt::Write as _;

/// The width of a chart in SVG units; the page scales it.
pub(crate) const WIDTH: f64 = 600.0;
/// The height in the same units.
pub(crate) const HEIGHT: f64 = 160.0;

/// The ratio of the top of the chart to the highest value.
const HEADROOM: f64 = 1.1;

/// One series of a chart, newest value last; `None` is a gap.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) name: &'static str,
    /// The CSS class of its colour.
    pub(crate) colour: &'static str,
    pub(crate) values: Vec<Option<f64>>,
}

/// The kind of a chart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Stacked areas.
    Stacked,
    /// Separate lines.
    Lines,
}

/// A chart, ready to be rendered.
#[derive(Debug)]
pub(crate) struct Chart {
    pub(crate) title: &'static str,
    pub(crate) is_wide: bool,
    pub(crate) lines: Vec<Line>,
    /// The value at the top.
    pub(crate) top: String,
    /// Whether there are no values above zero.
    pub(crate) is_empty: bool,
}

/// A rendered series.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) name: &'static str,
    pub(crate) colour: &'static str,
    /// The newest value as text.
    pub(crate) now: String,
    pub(crate) area: Option<String>,
    pub(crate) stroke: Option<String>,
}

impl Chart {
    /// The chart of `series`, each of at most `steps_max` values. `words` formats a value, `top_min` is the minimum of the
    /// top.
    pub(crate) fn new(
        title: &'static str,
        kind: Kind,
        series: Vec<Series>,
        steps_max: usize,
        top_min: f64,
        words: fn(f64) -> String,
    ) -> Self {
        let steps = series.iter().map(|series| series.values.len()).max().unwrap_or(0);
        let sums = |step: usize| series.iter().filter_map(move |series| series.values.get(step)?.as_ref());
        let highest = (0..steps).map(|step| match kind {
            Kind::Stacked => sums(step).sum(),
            Kind::Lines => sums(step).copied().fold(0.0, f64::max),
        });
        let highest: f64 = highest.fold(0.0, f64::max);
        let top = round_up((highest * HEADROOM).max(top_min));
        let is_empty = highest <= 0.0;
        let grid = Grid { steps, steps_max, top };
        let mut base = vec![0.0; steps];
        let lines = series.into_iter().map(|series| grid.line(series, kind, &mut base, words)).collect();
        Self { title, is_wide: kind == Kind::Stacked, lines, top: words(top), is_empty }
    }

    /// The chart as text, for screen readers.
    pub(crate) fn summary(&self) -> String {
        let lines: Vec<_> = self.lines.iter().map(|line| format!("{} {}", line.name, line.now)).collect();
        format!("{}: now {}", self.title, lines.join(", "))
    }

    /// The positions of the grid lines.
    pub(crate) fn grid(&self) -> [f64; 3] {
        [0.25, 0.5, 0.75].map(|part| HEIGHT * part)
    }
}

struct Grid {
    steps: usize,
    steps_max: usize,
    top: f64,
}

impl Grid {
    fn line(&self, series: Series, kind: Kind, base: &mut [f64], words: fn(f64) -> String) -> Line {
        let now = series.values.last().copied().flatten().map_or_else(|| "–".to_owned(), words);
        let (area, stroke) = match kind {
            Kind::Stacked => {
                let from = base.to_vec();
                for (base, value) in base.iter_mut().zip(&series.values) {
                    *base += value.unwrap_or(0.0);
                }
                (self.area(&from, base), None)
            }
            Kind::Lines => (None, self.stroke(&series.values)),
        };
        Line { name: series.name, colour: series.colour, now, area, stroke }
    }

    /// The position of a value; the newest is at the right edge.
    fn x(&self, step: usize) -> f64 {
        let from_right = (self.steps - 1 - step) as f64;
        WIDTH - from_right * WIDTH / (self.steps_max.max(2) - 1) as f64
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - (value / self.top).clamp(0.0, 1.0) * HEIGHT
    }

    /// The band between two series; none when it has no height.
    fn area(&self, from: &[f64], to: &[f64]) -> Option<String> {
        if from.iter().zip(to).all(|(from, to)| from >= to) {
            return None;
        }
        let mut path = String::from("M");
        for (step, value) in to.iter().enumerate() {
            point(&mut path, self.x(step), self.y(*value));
        }
        for (step, value) in from.iter().enumerate().rev() {
            point(&mut path, self.x(step), self.y(*value));
        }
        path.push('Z');
        Some(path)
    }

    /// A line with gaps for missing values.
    fn stroke(&self, values: &[Option<f64>]) -> Option<String> {
        let mut path = String::new();
        let mut is_drawing = false;
        for (step, value) in values.iter().enumerate() {
            if let Some(value) = value {
                path.push(if is_drawing { 'L' } else { 'M' });
                point(&mut path, self.x(step), self.y(*value));
                let is_alone = !is_drawing && values.get(step + 1).copied().flatten().is_none();
                if is_alone {
                    // A line of length zero with round caps is a dot.
                    path.push_str("h0 ");
                }
            }
            is_drawing = value.is_some();
        }
        (!path.is_empty()).then_some(path)
    }
}

fn point(path: &mut String, x: f64, y: f64) {
    let written = write!(path, "{x:.1} {y:.1} ");
    debug_assert!(written.is_ok(), "a string takes everything");
}

/// Rounds up to the next of 1, 2, 5, 10, 20, …
fn round_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|step| step * power).find(|step| *step >= value).unwrap_or(value)
}

#[cfg(test)]
mod tests;
