use super::super::ledger::{Answer, Entry, Ledger};
use super::{Fault, Mark, Said, judge, ran_once};

fn answered() -> (Entry, Answer) {
    let ledger = Ledger::new(None);
    let effect = ledger.happens(1);
    let answer = ledger.answers(1, effect);
    (ledger.entry(1), answer)
}

fn told(answer: &Answer, mark: Mark) -> Said {
    Said::Answer { answer: answer.clone(), mark }
}

#[test]
fn what_was_answered_and_an_uncertain_key_that_nobody_heard_of_are_right() {
    let (entry, answer) = answered();
    let uncertain = Said::Uncertain(Some("id".to_owned()));
    assert_eq!(judge(&entry, Some(&answer), &told(&answer, Mark::Replay)), Ok(()));
    assert_eq!(judge(&entry, None, &told(&answer, Mark::Replay)), Ok(()));
    assert_eq!(judge(&entry, None, &told(&answer, Mark::First)), Ok(()));
    assert_eq!(judge(&entry, None, &uncertain), Ok(()));
    assert_eq!(judge(&Entry::default(), None, &uncertain), Ok(()));
}

#[test]
fn an_answer_that_the_service_never_gave_is_wrong() {
    let (entry, answer) = answered();
    let mut changed = [answer.clone(), answer.clone(), answer.clone()];
    changed[0].status += 1;
    changed[1].body.push(' ');
    changed[2].fields[1].push('x');
    for changed in &changed {
        let fault = judge(&entry, None, &told(changed, Mark::Replay));
        assert!(matches!(fault, Err(Fault::Wrong(_))), "{changed:?}");
    }
    assert!(matches!(judge(&Entry::default(), None, &told(&answer, Mark::Replay)), Err(Fault::Wrong(_))));
}

#[test]
fn anything_else_is_lost() {
    let (entry, answer) = answered();
    let (mut twice, mut other) = (entry.clone(), answer.clone());
    other.body.push(' ');
    twice.effects = 2;
    twice.answers.push(other.clone());
    let cases = [
        (&entry, Some(&answer), Said::Uncertain(Some("an answer that was heard is gone".to_owned()))),
        (&entry, Some(&answer), told(&answer, Mark::First)),
        (&entry, None, told(&answer, Mark::Unrecorded)),
        (&twice, None, told(&other, Mark::First)),
        (&twice, Some(&answer), told(&other, Mark::Replay)),
        (&Entry::default(), None, Said::Uncertain(None)),
        (&entry, None, Said::Unavailable),
    ];
    for (entry, heard, said) in cases {
        assert!(matches!(judge(entry, heard, &said), Err(Fault::Lost(_))), "{said:?}");
    }
}

#[test]
fn a_key_that_was_settled_as_not_applied_runs_and_is_then_replayed() {
    let (entry, answer) = answered();
    let [first, unrecorded, replay] =
        [Mark::First, Mark::Unrecorded, Mark::Replay].map(|mark| told(&answer, mark));
    let uncertain = Said::Uncertain(Some("id".to_owned()));
    let is_right = |first: &Said, second: &Said| ran_once(&entry, Some(first), Some(second));
    assert!(is_right(&first, &replay) && is_right(&unrecorded, &replay));
    for (told_first, told_second) in [
        (&first, &first),
        (&replay, &replay),
        (&unrecorded, &unrecorded),
        (&unrecorded, &uncertain),
        (&uncertain, &replay),
    ] {
        assert!(!is_right(told_first, told_second), "{told_first:?}, {told_second:?}");
    }
    assert!(
        !ran_once(&entry, Some(&first), None) && !ran_once(&Entry::default(), Some(&first), Some(&replay))
    );
}
