//! A horizontal bar chart as SVG. Its colours are readable on light and dark pages, and its title and description say in
//! words what it shows.

use std::fmt::Write as _;

/// One bar.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Bar {
    /// The text in front of it.
    pub(super) label: String,
    /// Its length.
    pub(super) value: f64,
    /// Whether it is highlighted.
    pub(super) is_ours: bool,
}

const WIDTH: f64 = 800.0;
const LABELS: f64 = 330.0;
/// Room for the figure behind the longest bar.
const FIGURES: f64 = 60.0;
const ROW: f64 = 26.0;
const TOP: f64 = 40.0;
/// Middle grey and a saturated blue have contrast with white and with black.
const STYLE: &str = "text{font:13px system-ui,sans-serif;fill:#57606a}.head{font-weight:600;font-size:14px}\
    .peer{fill:#8c959f}.ours{fill:#2f81f7}.own{font-weight:600}\
    @media(prefers-color-scheme:dark){text{fill:#adbac7}}";

/// Draws the bars in their order, with that many decimals.
pub(super) fn draw(title: &str, bars: &[Bar], decimals: usize) -> String {
    let longest = bars.iter().map(|bar| bar.value).fold(f64::MIN_POSITIVE, f64::max);
    let height = TOP + ROW * bars.len() as f64 + 8.0;
    let title = escaped(title);
    let figures: Vec<String> =
        bars.iter().map(|bar| format!("{}: {:.decimals$}", escaped(&bar.label), bar.value)).collect();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-labelledby=\"title desc\">\n<title id=\"title\">{title}</title>\n<desc id=\"desc\">{}</desc>\n\
         <style>{STYLE}</style>\n<text class=\"head\" x=\"0\" y=\"20\">{title}</text>\n",
        figures.join("; ")
    );
    for (index, bar) in bars.iter().enumerate() {
        let y = TOP + ROW * index as f64;
        let length = (WIDTH - LABELS - FIGURES) * bar.value / longest;
        let (class, own) = if bar.is_ours { ("ours", " class=\"own\"") } else { ("peer", "") };
        let _ = writeln!(
            svg,
            "<text{own} x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{}</text>\
             <rect class=\"{class}\" x=\"{LABELS:.0}\" y=\"{y:.0}\" width=\"{length:.1}\" height=\"18\" rx=\"2\"/>\
             <text{own} x=\"{:.1}\" y=\"{:.0}\">{:.decimals$}</text>",
            LABELS - 8.0,
            y + 14.0,
            escaped(&bar.label),
            LABELS + length + 6.0,
            y + 14.0,
            bar.value,
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests;
