use super::*;

#[test]
fn the_table_has_a_line_per_step_and_a_total() {
    let mut table = Timetable::default();
    table.add("fmt", End::Passed, Duration::from_millis(1_200));
    table.add("deny", End::Skipped("cargo-deny is not installed".to_owned()), Duration::ZERO);
    table.add("test", End::Failed, Duration::from_millis(61_300));
    assert_eq!(
        table.to_string(),
        "fmt               1.2 s  ok\n\
         deny              0.0 s  skipped: cargo-deny is not installed\n\
         test             61.3 s  FAILED\n\
         total            62.5 s"
    );
}
