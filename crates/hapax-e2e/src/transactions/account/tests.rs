use super::Report;

/// What was told, what happened, and how many are doubled, lost, wrong and stuck.
type Case = (&'static [i64], &'static [i64], [usize; 4]);

#[test]
fn every_kind_of_damage_is_counted_as_what_it_is() {
    let cases: [Case; 7] = [
        (&[7, 7], &[7], [0, 0, 0, 0]),
        (&[7, 8], &[7, 8], [1, 0, 0, 0]),
        (&[7], &[], [0, 1, 0, 0]),
        (&[7, 9], &[7], [0, 0, 1, 0]),
        (&[9], &[7, 8], [1, 0, 1, 0]),
        (&[], &[], [0, 0, 0, 1]),
        // Nobody was told, and that is no damage: whoever ordered it was killed.
        (&[], &[7], [0, 0, 0, 0]),
    ];
    for (told, done, damage) in cases {
        let key = "order-1".to_owned();
        let answers: Vec<_> = told.iter().map(|number| (key.clone(), *number)).collect();
        let effects = [(key.clone(), done.to_vec())].into();
        let Report { doubles, lost, wrong, stuck, .. } = Report::of(&[key], &answers, &effects);
        assert_eq!([doubles.len(), lost.len(), wrong.len(), stuck.len()], damage, "{told:?} {done:?}");
    }
}
