use super::*;

#[test]
fn every_decision_that_may_rerun_the_operation_warns() {
    for state in [State::Uncertain, State::Completed, State::Failed] {
        assert!(consequence_of_deleting(state).contains("RUNS THE OPERATION"), "{state}");
    }
    assert!(consequence_of(&Verdict::NotApplied).contains("RUNS THE OPERATION"));
}

#[test]
fn the_result_of_a_function_must_be_json_and_a_note_is_free_text() {
    let payload = || Some(b"done".to_vec());
    assert_eq!(recorded(Class::Success, Format::FUNCTION, payload()).unwrap_err().code(), Code::InputInvalid);
    assert_eq!(recorded(Class::Success, Format::OPERATOR, payload()).unwrap().payload, "done");
    assert_eq!(recorded(Class::Error, Format::OPERATOR, None).unwrap().format, Format::NOT_KEPT);
}

#[test]
fn a_result_that_retries_cannot_read_causes_a_warning() {
    let settled = |format| Verdict::Applied {
        recorded: Recorded::new(Class::Success, format, "x"),
        retention: Duration::from_secs(1),
    };
    for (operation, format, has_warning) in [
        ("POST /orders", Format::HTTP, false),
        ("POST /orders", Format::FUNCTION, true),
        ("POST /orders", Format::OPERATOR, true),
        ("POST /orders", Format::NOT_KEPT, false),
        ("charge", Format::HTTP, true),
        ("charge", Format::FUNCTION, false),
        ("charge", Format::NOT_KEPT, false),
    ] {
        assert_eq!(caution(operation, &settled(format)).is_some(), has_warning, "{operation} {format:?}");
    }
    assert_eq!(caution("POST /orders", &Verdict::NotApplied), None);
}
