use super::super::ledger::{Answer, Entry, Ledger};
use super::{Found, Said, judge};

fn answered() -> (Entry, Answer) {
    let ledger = Ledger::new(None);
    let effect = ledger.happens(1);
    let answer = ledger.answers(1, effect);
    (ledger.entry(1), answer)
}

#[test]
fn a_replay_of_what_was_answered_and_an_uncertain_key_that_nobody_heard_of_are_right() {
    let (entry, answer) = answered();
    let uncertain = Said::Uncertain(Some("id".to_owned()));
    let found = Ok(Found::Uncertain("id".to_owned()));
    assert_eq!(judge(&entry, true, &Said::Answer { answer, is_replay: true }), Ok(Found::Replayed));
    assert_eq!(judge(&entry, false, &uncertain), found);
    assert_eq!(judge(&Entry::default(), false, &uncertain), found);
}

#[test]
fn anything_else_is_lost() {
    let (entry, answer) = answered();
    let replay = |answer: &Answer| Said::Answer { answer: answer.clone(), is_replay: true };
    let mut changed = [answer.clone(), answer.clone(), answer.clone()];
    changed[0].status += 1;
    changed[1].body.push(' ');
    changed[2].fields[1].push('x');
    for changed in &changed {
        assert!(judge(&entry, true, &replay(changed)).is_err(), "{changed:?}");
    }
    let run_again = Said::Answer { answer: answer.clone(), is_replay: false };
    let cases = [
        (&entry, true, Said::Uncertain(Some("an answer that was heard is gone".to_owned()))),
        (&entry, true, run_again),
        (&Entry::default(), false, replay(&answer)),
        (&Entry::default(), false, Said::Uncertain(None)),
        (&entry, false, Said::Unavailable),
    ];
    for (entry, is_answered, said) in cases {
        assert!(judge(entry, is_answered, &said).is_err(), "{said:?}");
    }
}
