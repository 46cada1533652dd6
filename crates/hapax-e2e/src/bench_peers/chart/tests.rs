use super::{Bar, draw};

fn bar(label: &str, value: f64, is_ours: bool) -> Bar {
    Bar { label: label.into(), value, is_ours }
}

#[test]
fn the_longest_bar_has_the_whole_width() {
    let svg = draw("Rates", &[bar("one", 0.5, true), bar("two", 1.0, false)], 2);
    assert!(svg.contains("class=\"ours\" x=\"330\" y=\"40\" width=\"205.0\""), "{svg}");
    assert!(svg.contains("class=\"peer\" x=\"330\" y=\"66\" width=\"410.0\""), "{svg}");
}

#[test]
fn the_figures_are_in_the_description_too() {
    let svg = draw("A < B", &[bar("one & two", 0.5, false)], 2);
    assert!(svg.contains("<title id=\"title\">A &lt; B</title>"), "{svg}");
    assert!(svg.contains("<desc id=\"desc\">one &amp; two: 0.50</desc>"), "{svg}");
}

#[test]
fn no_bars_are_an_empty_chart() {
    assert!(draw("Nothing", &[], 1).ends_with("</svg>\n"));
}
