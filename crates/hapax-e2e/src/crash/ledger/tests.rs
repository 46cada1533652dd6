use super::*;

const CLAIM: Act = Act { step: Step::Claim, key: 5, attempt: 1 };
const COMPLETE: Act = Act { step: Step::Complete, key: 5, attempt: 1 };
const RELEASE: Act = Act { step: Step::Release, key: 5, attempt: 1 };

/// How many faults are found when the store holds `seen` after these notes.
fn faults(notes: &[Note], seen: &Seen) -> usize {
    let mut ledger = Ledger::default();
    notes.iter().for_each(|note| ledger.note(note));
    ledger.compare(5, seen);
    ledger.take_faults().len()
}

fn pinned() -> Seen {
    Seen::Pinned { attempt: 1, payload: payload(5) }
}

const OPEN: Seen = Seen::Open { attempt: 1 };

#[test]
fn an_acknowledged_claim_must_be_there() {
    let notes = [Note::Begin(CLAIM), Note::Done(CLAIM)];
    assert_eq!(faults(&notes, &OPEN), 0);
    assert_eq!(faults(&notes, &Seen::Absent), 1);
    assert_eq!(faults(&notes, &Seen::Open { attempt: 2 }), 1);
}

#[test]
fn an_acknowledged_completion_must_be_there_byte_for_byte() {
    let notes = [Note::Begin(CLAIM), Note::Done(CLAIM), Note::Begin(COMPLETE), Note::Done(COMPLETE)];
    assert_eq!(faults(&notes, &pinned()), 0);
    assert_eq!(faults(&notes, &OPEN), 1);
    let mut damaged = payload(5);
    damaged.push(0);
    assert_eq!(faults(&notes, &Seen::Pinned { attempt: 1, payload: damaged }), 1);
}

#[test]
fn an_acknowledged_release_must_not_be_forgotten() {
    let notes = [Note::Begin(CLAIM), Note::Done(CLAIM), Note::Begin(RELEASE), Note::Done(RELEASE)];
    assert_eq!(faults(&notes, &Seen::Released { attempt: 1 }), 0);
    assert_eq!(faults(&notes, &OPEN), 1);
}

#[test]
fn what_was_under_way_or_unknown_may_be_there_or_not() {
    let mut notes = vec![Note::Begin(CLAIM), Note::Done(CLAIM), Note::Begin(COMPLETE)];
    assert_eq!((faults(&notes, &OPEN), faults(&notes, &pinned())), (0, 0));
    assert_eq!(faults(&notes, &Seen::Absent), 1);
    notes.push(Note::Unknown(COMPLETE));
    assert_eq!((faults(&notes, &OPEN), faults(&notes, &pinned())), (0, 0));
}

#[test]
fn what_was_refused_must_not_be_there() {
    let notes = [
        Note::Begin(CLAIM),
        Note::Done(CLAIM),
        Note::Begin(COMPLETE),
        Note::Refused(COMPLETE, "full".to_owned()),
    ];
    assert_eq!(faults(&notes, &OPEN), 0);
    assert_eq!(faults(&notes, &pinned()), 1);
}

#[test]
fn what_cannot_be_read_is_a_fault() {
    let notes = [Note::Begin(CLAIM)];
    assert_eq!(faults(&notes, &Seen::Unreadable("damaged".to_owned())), 1);
}

#[test]
fn every_note_reads_as_it_was_written() {
    let notes = [
        Note::Ready,
        Note::Begin(CLAIM),
        Note::Done(COMPLETE),
        Note::Refused(RELEASE, "full".to_owned()),
        Note::Unknown(CLAIM),
        Note::Wrong(CLAIM, "Busy { lease_left: 1s }".to_owned()),
    ];
    for note in notes {
        assert_eq!(note.to_string().parse::<Note>().unwrap(), note);
    }
}
