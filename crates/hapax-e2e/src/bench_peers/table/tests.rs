use super::Table;

#[test]
fn a_table_escapes_what_would_end_a_cell() {
    let mut table = Table::new(&["a", "b"]);
    table.row(&["x|y", "one\ntwo"]);
    assert_eq!(table.text(), "| a | b |\n|---|---|\n| x\\|y | one two |\n");
}
