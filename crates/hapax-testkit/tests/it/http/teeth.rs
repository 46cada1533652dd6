//! The suite passes a correct layer and finds each planted defect in its own case.

use hapax_testkit::http_suite::{Case, Kind, Report, Surface, Verdict, run};

use super::naive::{Bare, Defect, Naive};

/// The cases that the small layer passes: those of the plain rules, without settings.
fn is_plain(case: &Case) -> bool {
    let rules =
        ["K-01", "K-02", "K-03", "K-05", "K-06", "K-07", "M-02", "S-05", "F-01", "F-10", "X-05", "X-06"];
    case.settings.is_empty()
        && !case.id.ends_with("-of-another-layer")
        && (rules.contains(&&*case.rule)
            || case.id.starts_with("r-01") && case.id != "r-01-marker-of-the-origin")
}

/// Whether the case is from its own file, not from the table of structured fields.
fn is_file(case: &Case) -> bool {
    !case.id.starts_with("structured-fields/")
}

async fn report(surface: &impl Surface, filter: impl Fn(&Case) -> bool) -> Report {
    run(&super::cases(), surface, filter).await.expect("the case files are well formed")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_layer_that_keeps_the_plain_rules_passes() {
    let report = report(&Naive(None), is_plain).await;
    let [passed, failed, _] = report.counts();
    assert!(passed > 0 && failed == 0, "{report}");
    assert!(report.counts()[0] >= 80, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_preventing_case_fails_without_a_layer() {
    let report = report(&Bare, |case| case.kind == Kind::Refuses).await;
    let unnoticed: Vec<_> =
        report.results.iter().filter(|result| !matches!(result.verdict, Verdict::Failed(_))).collect();
    assert!(unnoticed.is_empty(), "{unnoticed:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_defect_fails_a_case_of_its_rule() {
    let check = async |defect, cases: &[&str]| {
        let report = report(&Naive(Some(defect)), |case| is_plain(case) && is_file(case)).await;
        for case in cases {
            assert!(report.failed(case), "{defect:?} should fail {case}\n{report}");
        }
        assert!(report.counts()[0] > 0, "{defect:?} fails everything");
    };
    check(
        Defect::TakesTheFirstLine,
        &["k-06-two-equal-lines", "k-06-two-different-lines", "k-06-empty-second-line"],
    )
    .await;
    check(Defect::IgnoresBadKeys, &["k-05-corrected-key", "k-06-comma-list", "k-07-empty-string"]).await;
    check(Defect::KeepsQuotes, &["k-03-quoting-changes-between-retries", "k-03-bare-then-quoted"]).await;
    check(Defect::ForgetsFingerprints, &["f-01-other-request"]).await;
    check(Defect::RunsDuplicates, &["x-05-in-progress", "x-05-conflict-is-not-stored"]).await;
    check(Defect::StopsOnHangUp, &["x-06-hang-up"]).await;
    check(Defect::MarksNothing, &["r-01-same-answer", "k-01-quoted"]).await;
    check(Defect::ForgetsHeaders, &["r-01-same-answer"]).await;
    check(Defect::SharesKeys, &["s-05-equal-keys-of-two-callers", "s-05-running-elsewhere-is-not-told"])
        .await;
    check(Defect::CoversGet, &["m-02-get-passes", "m-02-get-leaves-no-record"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cases_for_missing_features_are_reported_as_skipped() {
    let report = report(&Naive(None), |case| case.id == "d-03-store-down").await;
    assert_eq!(report.counts(), [0, 0, 2], "{report}");
    assert!(report.table().contains("D-03\td-03-store-down HTTP/1.1\tskipped: "), "{}", report.table());
    assert!(report.to_string().contains("store-faults"), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_names_its_step_and_its_expectation() {
    let report = report(&Bare, |case| case.id == "k-03-bare-then-quoted").await;
    let text = report.to_string();
    for part in [
        "k-03-bare-then-quoted HTTP/1.1: step 2",
        "expected executions so far: 1",
        "got      executions so far: 2",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(std::panic::catch_unwind(|| report.assert_passed()).is_err());
}
