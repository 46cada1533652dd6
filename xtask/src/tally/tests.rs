use super::Tally;

fn tally(output: &[&str]) -> Tally {
    let mut tally = Tally::default();
    output.iter().for_each(|line| tally.read(line));
    tally
}

#[test]
fn sums_nextest_and_cargo_test() {
    let tally = tally(&[
        "        PASS [   0.004s] hapax-core::it key::quoted",
        "     Summary [   1.204s] 12 tests run: 12 passed (1 slow), 2 skipped",
        "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
    ]);
    assert_eq!(tally.to_string(), "17 passed, 0 failed, 3 skipped");
    assert_eq!(tally.summary_lines(), 2);
}

#[test]
fn timeouts_and_exec_failures_count_as_failed() {
    let tally = tally(&[
        "     Summary [   9.1s] 9 tests run: 5 passed, 2 failed, 1 timed out, 1 exec failed, 0 skipped",
        "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s",
    ]);
    assert_eq!(tally.to_string(), "6 passed, 6 failed");
}

#[test]
fn ignores_other_lines() {
    let shown_by_nextest =
        "    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 24 filtered out";
    assert_eq!(tally(&[shown_by_nextest]), Tally::default());
    assert_eq!(tally(&["3 passed, 0 failed", "running 3 tests", "Summary"]), Tally::default());
}

#[test]
fn counts_a_single_test() {
    let tally = tally(&["     Summary [   0.004s] 1 test run: 1 passed, 0 skipped"]);
    assert_eq!(tally.to_string(), "1 passed, 0 failed");
}
