use super::*;

fn read(text: &str) -> Result<Vec<String>, String> {
    let shown = |rule: &Rule| match &rule.fate {
        Fate::Done => rule.id.to_string(),
        Fate::NotDone(reason) => format!("{}, {reason}", rule.id),
    };
    parse(text).map(|rules| rules.iter().map(shown).collect()).map_err(|error| error.to_string())
}

#[test]
fn rules_are_paragraphs_and_what_is_not_done_is_a_table() {
    let text = "\
## Keys

**K-01** A key MUST be read. **K-02** does not begin here.
*`key.rs`; `key::k_03_x`*

| R-11 | is no rule outside its table |
**Note** well.

## Deliberately not done

| rule | reason |
|---|---|
| R-12 | needs a | clock |
| R-13 | |
**K-04** is no rule here.

## Store

**D-01** An outcome answers.
";
    assert_eq!(read(text).unwrap(), ["K-01", "R-12, needs a | clock", "D-01"]);
}

#[test]
fn a_rule_that_is_there_twice_is_a_mistake() {
    let text = "**K-01** One.\n## Deliberately not done\n| K-01 | other |";
    assert_eq!(read(text), Err("the protocol has K-01 twice".to_owned()));
    assert!(read("no rules").is_err());
}

#[test]
fn the_protocol_can_be_read() {
    let text = std::fs::read_to_string(crate::root().unwrap().join("spec/protocol.md")).unwrap();
    let ids = read(&text).unwrap();
    assert!(ids.len() > 20 && ids[0] == "K-01", "{ids:?}");
}
