use super::{
    AnswerSource, AttemptResult, AuditFault, Damage, EffectLog, KeyEffects, Ledger, OrderAnswer,
    audit_effects, check_result, ran_once,
};

fn answered() -> (KeyEffects<OrderAnswer>, OrderAnswer) {
    let answer = OrderAnswer::new(1, 1);
    (KeyEffects { effects: 1, answers: vec![answer.clone()] }, answer)
}

fn result(answer: &OrderAnswer, source: AnswerSource) -> AttemptResult {
    AttemptResult::Answered { answer: answer.clone(), source }
}

#[test]
fn logged_answers_and_unheard_uncertain_keys_are_right() {
    let (found, answer) = answered();
    let uncertain = AttemptResult::Uncertain(Some("id".to_owned()));
    assert_eq!(check_result(&found, Some(&answer), &result(&answer, AnswerSource::Replay)), Ok(()));
    assert_eq!(check_result(&found, None, &result(&answer, AnswerSource::Replay)), Ok(()));
    assert_eq!(check_result(&found, None, &result(&answer, AnswerSource::Executed)), Ok(()));
    assert_eq!(check_result(&found, None, &uncertain), Ok(()));
    assert_eq!(check_result(&KeyEffects::default(), None, &uncertain), Ok(()));
}

#[test]
fn an_answer_that_the_service_never_gave_is_wrong() {
    let (found, answer) = answered();
    let mut changed = [answer.clone(), answer.clone(), answer.clone()];
    changed[0].status += 1;
    changed[1].body.push(' ');
    changed[2].fields[1].push('x');
    for changed in &changed {
        let checked = check_result(&found, None, &result(changed, AnswerSource::Replay));
        assert!(matches!(checked, Err(AuditFault::Wrong(_))), "{changed:?}");
    }
    let checked = check_result(&KeyEffects::default(), None, &result(&answer, AnswerSource::Replay));
    assert!(matches!(checked, Err(AuditFault::Wrong(_))));
}

#[test]
fn any_other_result_is_a_lost_answer() {
    let (found, answer) = answered();
    let (mut twice, mut other) = (found.clone(), answer.clone());
    other.body.push(' ');
    twice.effects = 2;
    twice.answers.push(other.clone());
    let cases = [
        (&found, Some(&answer), AttemptResult::Uncertain(Some("heard before".to_owned()))),
        (&found, Some(&answer), result(&answer, AnswerSource::Executed)),
        (&found, None, result(&answer, AnswerSource::Unrecorded)),
        (&twice, None, result(&other, AnswerSource::Executed)),
        (&twice, Some(&answer), result(&other, AnswerSource::Replay)),
        (&KeyEffects::default(), None, AttemptResult::Uncertain(None)),
        (&found, None, AttemptResult::Unavailable),
    ];
    for (found, heard, result) in cases {
        let checked = check_result(found, heard, &result);
        assert!(matches!(checked, Err(AuditFault::Lost(_))), "{result:?}");
    }
}

#[test]
fn a_key_settled_as_not_applied_is_executed_and_then_replayed() {
    let (found, answer) = answered();
    let [executed, unrecorded, replay] =
        [AnswerSource::Executed, AnswerSource::Unrecorded, AnswerSource::Replay]
            .map(|source| result(&answer, source));
    let uncertain = AttemptResult::Uncertain(Some("id".to_owned()));
    let is_right =
        |first: &AttemptResult, second: &AttemptResult| ran_once(&found, Some(first), Some(second));
    assert!(is_right(&executed, &replay) && is_right(&unrecorded, &replay));
    for (first, second) in [
        (&executed, &executed),
        (&replay, &replay),
        (&unrecorded, &unrecorded),
        (&unrecorded, &uncertain),
        (&uncertain, &replay),
    ] {
        assert!(!is_right(first, second), "{first:?}, {second:?}");
    }
    assert!(!ran_once(&found, Some(&executed), None));
    assert!(!ran_once(&KeyEffects::default(), Some(&executed), Some(&replay)));
}

/// The answers that callers got, the answers of effects, and the numbers of doubles, lost, wrong and stuck.
type Case = (&'static [i64], &'static [i64], [usize; 4]);

#[test]
fn every_kind_of_damage_is_counted_as_its_kind() {
    let cases: [Case; 7] = [
        (&[7, 7], &[7], [0, 0, 0, 0]),
        (&[7, 8], &[7, 8], [1, 0, 0, 0]),
        (&[7], &[], [0, 1, 0, 0]),
        (&[7, 9], &[7], [0, 0, 1, 0]),
        (&[9], &[7, 8], [1, 0, 1, 0]),
        (&[], &[], [0, 0, 0, 1]),
        // Without an answer it is no damage: the caller was killed.
        (&[], &[7], [0, 0, 0, 0]),
    ];
    for (answers, effects, expected) in cases {
        let (ledger, log) = (Ledger::new(1..2), EffectLog::default());
        answers.iter().for_each(|answer| ledger.add_answer(1, *answer));
        for answer in effects {
            log.add_effect(1);
            log.add_answer(1, *answer);
        }
        let Damage { doubles, lost, wrong, stuck } = audit_effects(&ledger, &log);
        assert_eq!(
            [doubles.len(), lost.len(), wrong.len(), stuck.len()],
            expected,
            "{answers:?} {effects:?}"
        );
    }
}
