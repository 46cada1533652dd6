use super::*;

fn read(text: &str) -> Result<Vec<String>, String> {
    let shown = |rule: &Rule| match &rule.status {
        RuleStatus::Done => rule.id.to_string(),
        RuleStatus::NotDone(reason) => format!("{}, {reason}", rule.id),
    };
    parse(text).map(|rules| rules.iter().map(shown).collect()).map_err(|error| error.to_string())
}

#[test]
fn parses_rule_paragraphs_and_the_table_of_rules_not_done() {
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
fn a_duplicate_rule_is_an_error() {
    let text = "**K-01** One.\n## Deliberately not done\n| K-01 | other |";
    assert_eq!(read(text), Err("the protocol has K-01 twice".to_owned()));
    assert!(read("no rules").is_err());
}

#[test]
fn parses_the_protocol() {
    let text = std::fs::read_to_string(crate::root().unwrap().join("spec/protocol.md")).unwrap();
    let ids = read(&text).unwrap();
    assert!(ids.len() > 20 && ids[0] == "K-01", "{ids:?}");
}
