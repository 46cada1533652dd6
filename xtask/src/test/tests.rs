use std::path::PathBuf;

use super::*;

const SAMPLE: &[Step] = &[
    Step { name: "first", about: "", run: |_| Ok(End::Passed) },
    Step { name: "second", about: "", run: |_| bail!("the reason") },
    Step { name: "third", about: "", run: |_| Ok(End::Skipped("nothing to do".to_owned())) },
];

fn ran(typed: &[&str]) -> (Result<()>, String) {
    let typed: Vec<String> = typed.iter().map(|name| (*name).to_owned()).collect();
    let mut run = Run { root: PathBuf::new(), tally: Tally::default(), passed: PassedTests::default() };
    let mut table = Timetable::default();
    let ended = run_steps(&chosen(SAMPLE, &typed).unwrap(), &mut run, &mut table, None);
    (ended, table.to_string())
}

#[test]
fn a_failed_step_names_the_command_that_repeats_it() {
    let error = |rerun| {
        let mut run = Run { root: PathBuf::new(), tally: Tally::default(), passed: PassedTests::default() };
        run_steps(&[&SAMPLE[1]], &mut run, &mut Timetable::default(), rerun).unwrap_err().to_string()
    };
    assert!(error(None).ends_with("cargo xtask test second"), "{}", error(None));
    assert!(error(Some("quick")).ends_with("cargo xtask test quick"), "{}", error(Some("quick")));
}

#[test]
fn the_first_failed_step_stops_the_run_and_is_named() {
    let (ended, table) = ran(&[]);
    let error = format!("{:#}", ended.unwrap_err());
    assert!(error.contains("step `second` failed") && error.contains("the reason"), "{error}");
    assert!(table.contains("second") && table.contains("FAILED") && !table.contains("third"), "{table}");
}

#[test]
fn only_named_steps_run() {
    let (ended, table) = ran(&["third"]);
    assert!(ended.is_ok());
    assert!(table.contains("third") && table.contains("nothing to do") && !table.contains("first"));
}

#[test]
fn an_unknown_step_is_an_error_with_a_hint() {
    let error = chosen(SAMPLE, &["secnd".to_owned()]).unwrap_err().to_string();
    assert!(error.starts_with("unknown step `secnd`: did you mean `second`?"), "{error}");
}
