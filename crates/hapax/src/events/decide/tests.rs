//! Every row of the table, and what holds for all of them.

use super::*;

const LEASE_LEFT: Duration = Duration::from_secs(20);

fn rules(dead_letters: DeadLetters) -> Rules {
    Rules { tries_max: 8, crashes_max: 3, on_lapse: OnLapse::Rerun, dead_letters, lease: LEASE_LEFT }
}

fn back_off(attempt: u32) -> Wait {
    Wait::BackOff { attempt }
}

const DEAD: Then = Then::Ack(Handled::Dead);

/// What is found, what is recorded, and what the broker learns, if the consumer keeps dead letters.
fn rows() -> Vec<(Finding, Write, Then)> {
    use Finding as F;
    let rejected = |reason| F::Rejected { reason, attempt: 1 };
    let unusable = |reason| F::Unusable { reason };
    vec![
        (F::Succeeded, Write::Completed, Then::Ack(Handled::Ran)),
        (F::Completed, Write::Nothing, Then::Ack(Handled::Duplicate)),
        (F::Failed { attempt: 1 }, Write::Released, Then::Hold(back_off(1))),
        (F::Failed { attempt: 7 }, Write::Released, Then::Hold(back_off(7))),
        (F::Failed { attempt: 8 }, Write::DeadLetter(DeadReason::Failed), DEAD),
        (F::Failed { attempt: 9 }, Write::DeadLetter(DeadReason::Failed), DEAD),
        (rejected(DeadReason::Permanent), Write::DeadLetter(DeadReason::Permanent), DEAD),
        (rejected(DeadReason::Undecodable), Write::DeadLetter(DeadReason::Undecodable), DEAD),
        (rejected(DeadReason::UnknownType), Write::DeadLetter(DeadReason::UnknownType), DEAD),
        (F::Overdue, Write::DeadLetter(DeadReason::Lost), DEAD),
        (F::Dead, Write::Nothing, DEAD),
        (F::Redriven, Write::Removed, Then::ClaimAgain),
        (F::Unknown { attempt: 2 }, Write::Uncertain, Then::Hold(back_off(2))),
        (F::Abandoned, Write::Settled(DeadReason::Crashed), DEAD),
        (F::Unsettled, Write::Nothing, Then::Hold(back_off(1))),
        (F::Busy { lease_left: LEASE_LEFT }, Write::Nothing, Then::Hold(Wait::Change { within: LEASE_LEFT })),
        (unusable(DeadReason::Reused), Write::Apart(DeadReason::Reused), DEAD),
        (unusable(DeadReason::Unreadable), Write::Apart(DeadReason::Unreadable), DEAD),
        (unusable(DeadReason::Expired), Write::Apart(DeadReason::Expired), DEAD),
        (unusable(DeadReason::Unnamed), Write::Apart(DeadReason::Unnamed), DEAD),
        (F::Unrecorded, Write::Nothing, Then::Hold(Wait::Change { within: LEASE_LEFT })),
        (F::StoreFailed, Write::Nothing, Then::Hold(Wait::Store)),
        (F::TooLarge { attempt: 8 }, Write::Released, Then::GiveBack(Some(back_off(8)))),
        (F::Draining, Write::Nothing, Then::GiveBack(None)),
    ]
}

#[test]
fn v_02_v_05_every_finding_has_its_row() {
    for (finding, write, then) in rows() {
        let decided = decide(finding, &rules(DeadLetters::Kept));
        assert_eq!(decided, Decision { write, then }, "{finding:?}");
    }
}

#[test]
fn v_05_an_at_most_once_consumer_settles_at_the_first_silent_end() {
    let rules = Rules { on_lapse: OnLapse::Uncertain, ..rules(DeadLetters::Kept) };
    let expected = Decision { write: Write::Settled(DeadReason::Uncertain), then: DEAD };
    assert_eq!(decide(Finding::Abandoned, &rules), expected);
}

/// Only what is recorded, now or before, is acknowledged.
#[test]
fn v_02_v_03_v_04_nothing_is_acknowledged_without_an_outcome() {
    for dead_letters in [DeadLetters::Kept, DeadLetters::Broker] {
        for (finding, ..) in rows() {
            let Decision { write, then } = decide(finding, &rules(dead_letters));
            let is_recorded_before = matches!(finding, Finding::Completed | Finding::Dead);
            let records_an_outcome = matches!(
                write,
                Write::Completed | Write::DeadLetter(_) | Write::Settled(_) | Write::Apart(_)
            );
            let is_acknowledged = matches!(then, Then::Ack(_));
            assert_eq!(is_acknowledged, is_recorded_before || records_an_outcome, "{finding:?}");
        }
    }
}

/// The broker keeps the dead letters then, so it must get the event back, and none may be pinned beside.
#[test]
fn v_05_no_dead_letter_is_recorded_where_the_broker_keeps_them() {
    for (finding, ..) in rows() {
        let Decision { write, then } = decide(finding, &rules(DeadLetters::Broker));
        let pins = matches!(write, Write::DeadLetter(_) | Write::Settled(_) | Write::Apart(_));
        assert!(!pins, "{finding:?}");
        let is_failure = matches!(
            finding,
            Finding::Failed { .. }
                | Finding::Rejected { .. }
                | Finding::Unknown { .. }
                | Finding::Abandoned
                | Finding::Unusable { .. }
        );
        assert!(!is_failure || matches!(then, Then::GiveBack(Some(_))), "{finding:?}: {then:?}");
    }
    assert!(!rules(DeadLetters::Broker).is_overdue(u32::MAX));
}

#[test]
fn v_05_an_attempt_beyond_all_tries_and_crashes_is_overdue() {
    let rules = rules(DeadLetters::Kept);
    assert_eq!([11, 12].map(|attempt| rules.is_overdue(attempt)), [false, true]);
}
