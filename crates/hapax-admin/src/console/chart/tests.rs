use super::*;

fn series(values: &[Option<f64>]) -> Series {
    Series { name: "a", colour: "c1", values: values.to_vec() }
}

fn words(value: f64) -> String {
    format!("{value}")
}

#[test]
fn the_top_is_a_round_number_above_the_highest_value() {
    for (highest, top) in [(0.0, "1"), (0.9, "1"), (1.5, "2"), (4.0, "5"), (9.5, "20"), (180.0, "200")] {
        let chart = Chart::new("t", Kind::Lines, vec![series(&[Some(highest)])], 10, 1.0, words);
        assert_eq!(chart.top, top, "{highest}");
    }
}

#[test]
fn the_newest_value_is_at_the_right_edge() {
    let chart = Chart::new("t", Kind::Lines, vec![series(&[Some(0.0), Some(5.0)])], 11, 5.0, words);
    assert_eq!(chart.lines[0].stroke.as_deref(), Some("M540.0 160.0 L600.0 80.0 "));
    assert_eq!(chart.lines[0].now, "5");
}

#[test]
fn a_gap_is_a_gap_and_a_single_value_a_dot() {
    let chart = Chart::new("t", Kind::Lines, vec![series(&[Some(1.0), None, Some(1.0)])], 3, 2.0, words);
    assert_eq!(chart.lines[0].stroke.as_deref(), Some("M0.0 80.0 h0 M600.0 80.0 h0 "));
    let nothing = Chart::new("t", Kind::Lines, vec![series(&[None])], 3, 2.0, words);
    assert_eq!((nothing.lines[0].stroke.as_deref(), nothing.lines[0].now.as_str()), (None, "–"));
}

#[test]
fn stacked_series_lie_on_each_other() {
    let both = vec![series(&[Some(1.0), Some(1.0)]), series(&[Some(1.0), Some(0.0)])];
    let chart = Chart::new("t", Kind::Stacked, both, 2, 2.0, words);
    assert_eq!(chart.top, "5");
    assert_eq!(chart.lines[0].area.as_deref(), Some("M0.0 128.0 600.0 128.0 600.0 160.0 0.0 160.0 Z"));
    assert_eq!(chart.lines[1].area.as_deref(), Some("M0.0 96.0 600.0 128.0 600.0 128.0 0.0 128.0 Z"));
}

#[test]
fn an_empty_chart_is_marked() {
    let chart = Chart::new("t", Kind::Stacked, vec![series(&[])], 2, 1.0, words);
    assert!(chart.is_empty);
    assert_eq!(chart.summary(), "t: now a –");
}
