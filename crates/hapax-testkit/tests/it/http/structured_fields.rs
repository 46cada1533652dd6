//! The table of structured-field values against two parsers: a public one, and ours.

use hapax_core::key::KeyRules;
use hapax_testkit::http_suite::structured_fields::{Table, table};

fn values() -> Table {
    let path = super::cases().join("structured-fields.toml");
    let text = std::fs::read_to_string(path).expect("the table is there");
    table(&text).expect("the table is well formed")
}

#[test]
fn k_01_the_table_agrees_with_a_structured_field_parser() {
    for value in values().values {
        let joined = value.lines.join(", ");
        let parsed = sfv::Parser::new(&joined).parse::<sfv::Item>().ok();
        let string = parsed.and_then(|item| match item.bare_item {
            sfv::BareItem::String(string) => Some(String::from(string)),
            _ => None,
        });
        assert_eq!(value.string, string, "{}: {joined}", value.name);
    }
}

#[test]
fn k_01_k_02_the_table_agrees_with_the_keys_parser() {
    for value in values().values {
        let lines = || value.lines.iter().map(|line| line.as_bytes());
        let parse = |rules: KeyRules| rules.parse(lines()).ok().flatten().map(|key| key.as_str().to_owned());
        assert_eq!(value.strict().map(str::to_owned), parse(KeyRules::new().strict()), "{}", value.name);
        assert_eq!(value.default().map(str::to_owned), parse(KeyRules::new()), "{}", value.name);
    }
}
