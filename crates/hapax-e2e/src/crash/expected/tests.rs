use super::*;

const CLAIM: Operation = Operation { kind: OperationKind::Claim, key: 5, attempt: 1 };
const COMPLETE: Operation = Operation { kind: OperationKind::Complete, key: 5, attempt: 1 };
const RELEASE: Operation = Operation { kind: OperationKind::Release, key: 5, attempt: 1 };

/// How many faults are found when the store holds `stored` after these events.
fn faults(events: &[ChildEvent], stored: &StoredState) -> usize {
    let mut expected = ExpectedStore::default();
    events.iter().for_each(|event| expected.apply(event));
    expected.compare(5, stored);
    expected.take_faults().len()
}

fn pinned() -> StoredState {
    StoredState::Pinned { attempt: 1, payload: payload(5) }
}

const OPEN: StoredState = StoredState::Open { attempt: 1 };

#[test]
fn an_acknowledged_claim_must_be_stored() {
    let events = [ChildEvent::Begin(CLAIM), ChildEvent::Done(CLAIM)];
    assert_eq!(faults(&events, &OPEN), 0);
    assert_eq!(faults(&events, &StoredState::Absent), 1);
    assert_eq!(faults(&events, &StoredState::Open { attempt: 2 }), 1);
}

#[test]
fn an_acknowledged_completion_must_be_stored_byte_for_byte() {
    let events = [
        ChildEvent::Begin(CLAIM),
        ChildEvent::Done(CLAIM),
        ChildEvent::Begin(COMPLETE),
        ChildEvent::Done(COMPLETE),
    ];
    assert_eq!(faults(&events, &pinned()), 0);
    assert_eq!(faults(&events, &OPEN), 1);
    let mut damaged = payload(5);
    damaged.push(0);
    assert_eq!(faults(&events, &StoredState::Pinned { attempt: 1, payload: damaged }), 1);
}

#[test]
fn an_acknowledged_release_must_be_stored() {
    let events = [
        ChildEvent::Begin(CLAIM),
        ChildEvent::Done(CLAIM),
        ChildEvent::Begin(RELEASE),
        ChildEvent::Done(RELEASE),
    ];
    assert_eq!(faults(&events, &StoredState::Released { attempt: 1 }), 0);
    assert_eq!(faults(&events, &OPEN), 1);
}

#[test]
fn an_operation_in_flight_or_unknown_may_be_applied_or_not() {
    let mut events = vec![ChildEvent::Begin(CLAIM), ChildEvent::Done(CLAIM), ChildEvent::Begin(COMPLETE)];
    assert_eq!((faults(&events, &OPEN), faults(&events, &pinned())), (0, 0));
    assert_eq!(faults(&events, &StoredState::Absent), 1);
    events.push(ChildEvent::Unknown(COMPLETE));
    assert_eq!((faults(&events, &OPEN), faults(&events, &pinned())), (0, 0));
}

#[test]
fn a_refused_operation_must_not_be_applied() {
    let events = [
        ChildEvent::Begin(CLAIM),
        ChildEvent::Done(CLAIM),
        ChildEvent::Begin(COMPLETE),
        ChildEvent::Refused(COMPLETE, "full".to_owned()),
    ];
    assert_eq!(faults(&events, &OPEN), 0);
    assert_eq!(faults(&events, &pinned()), 1);
}

#[test]
fn an_unreadable_record_is_a_fault() {
    let events = [ChildEvent::Begin(CLAIM)];
    assert_eq!(faults(&events, &StoredState::Unreadable("damaged".to_owned())), 1);
}

#[test]
fn every_event_parses_as_it_was_printed() {
    let events = [
        ChildEvent::Ready,
        ChildEvent::Begin(CLAIM),
        ChildEvent::Done(COMPLETE),
        ChildEvent::Refused(RELEASE, "full".to_owned()),
        ChildEvent::Unknown(CLAIM),
        ChildEvent::Wrong(CLAIM, "Busy { lease_left: 1s }".to_owned()),
    ];
    for event in events {
        assert_eq!(event.to_string().parse::<ChildEvent>().unwrap(), event);
    }
}
