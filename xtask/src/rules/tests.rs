use super::names::RuleId;
use super::*;

const SPEC: &str = "\
**K-01** One.
*`key.rs`; `key::k_01_a`, `k-01-c1`*
**K-02** Two.
**K-03** Three.
## Deliberately not done
| K-04 | out of scope |";

fn passed(lines: &[&str]) -> PassedTests {
    let mut passed = PassedTests::default();
    lines.iter().for_each(|line| passed.read(line));
    passed
}

fn cases(report: &str) -> Vec<Case> {
    let folder = std::env::temp_dir().join(format!("xtask-rules-{}-{}", report.len(), std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("axum.tsv"), report).unwrap();
    let cases = cases::read(&folder).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    cases
}

#[test]
fn each_rule_has_a_line_with_its_tests_and_cases() {
    let rules = spec::parse(SPEC).unwrap();
    let passed = passed(&["test key::k_01_a ... ok", "test key::k_01_k_03_b ... ok"]);
    let cases = cases("K-01\tk-01-c1 HTTP/2\tpassed\nK-01\tc2\tskipped: no\nK-03\tc3\tfailed\n");
    let rows: Vec<Row<'_>> = rules.iter().map(|rule| Row::of(rule, &passed, &cases)).collect();
    let lines: Vec<String> = rows.iter().map(Row::line).collect();
    let expected = [
        "rule K-01  2 tests  1 cases  passed",
        "rule K-02  0 tests  0 cases  not covered",
        "rule K-03  1 tests  0 cases  failed",
        "rule K-04  0 tests  0 cases  not done: out of scope",
    ];
    assert_eq!(lines, expected);
    let complaints: Vec<String> = rows.iter().filter_map(Row::complaint).collect();
    assert_eq!(complaints, ["K-02: not covered", "K-03: failed"]);

    let table = markdown(&rows);
    let first = "| K-01 | passed | `key::k_01_a`<br>`key::k_01_k_03_b` | axum c2: skipped: no<br>axum k-01-c1 HTTP/2: passed |";
    assert!(table.lines().any(|line| line == first), "{table}");
}

/// The citations of a rule exist and are not stale.
#[test]
fn rules_name_a_test_or_case_that_passed() {
    let complaint = |named: &str, cases: &[Case]| {
        let rules = spec::parse(&format!("**K-01** One.\n{named}")).unwrap();
        let passed =
            passed(&["PASS [ 0.1s] (1/1) hapax key::tests::k_01_a", "PASS [ 0.1s] (1/1) hapax key::plain"]);
        Row::of(&rules[0], &passed, cases).complaint().unwrap_or_default()
    };
    let cases = cases("K-01\tk-01-c1 HTTP/2\tpassed\nK-01\tk-01-c2\tskipped: no\n");
    assert_eq!(complaint("*`key.rs`; `key::k_01_a`, `k-01-c1`*", &cases), "");
    for nothing in ["", "*`key.rs`; `key`*", "*`key.rs`; `key::plain`*", "`key::k_01_a`"] {
        let expected = "K-01: the protocol cites neither a test nor a case";
        assert_eq!(complaint(nothing, &cases), expected, "{nothing}");
    }
    for gone in ["key::k_01_b", "k-01-c2", "k-01-c3"] {
        let expected = format!("K-01: the protocol cites `{gone}`, which did not run and pass");
        assert_eq!(complaint(&format!("*`key::k_01_a`, `{gone}`*"), &cases), expected);
    }
}

#[test]
fn a_skipped_case_does_not_cover_its_rule() {
    let rules = spec::parse("**K-02** Two.").unwrap();
    let cases = cases("K-02\tc1\tskipped: cannot\n");
    let passed = passed(&[]);
    assert_eq!(Row::of(&rules[0], &passed, &cases).status(), NOT_COVERED);
}

#[test]
fn unknown_rule_ids_are_reported_with_their_test_or_case() {
    let rules = spec::parse(SPEC).unwrap();
    let passed = passed(&["test key::k_01_k_91_a ... ok", "test key::plain ... ok"]);
    let cases = cases("K-92\tc1\tpassed\nK-04\tc4\tpassed\n");
    let expected =
        ["key::k_01_k_91_a: the protocol has no rule K-91", "axum c1: the protocol has no rule K-92"];
    assert_eq!(unknown_ids(&rules, &passed, &cases), expected);
    assert!(RuleId::parse("K-91").is_some());
}

#[test]
fn no_passed_test_is_an_error() {
    let error = check(&crate::root().unwrap(), &PassedTests::default()).unwrap_err().to_string();
    assert!(error.contains("cargo xtask test tests rules"), "{error}");
}
