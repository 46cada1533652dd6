use super::{Sql, is_schema, text};

#[test]
fn statements_name_their_schema_and_hold_no_comments() {
    let sql = Sql::new("shop");
    for statement in [
        &sql.claim,
        &sql.look,
        &sql.write,
        &sql.holder,
        &sql.replace,
        &sql.remove,
        &sql.sweep,
        &sql.page,
        &sql.page_open,
        &sql.stats,
        &sql.watch,
    ] {
        assert!(statement.contains("\"shop\".record"), "{statement}");
        for left_out in ["--", "SCHEMA", "OPEN_ONLY", "LOOK"] {
            assert!(!statement.contains(left_out), "{left_out} in {statement}");
        }
    }
    assert_eq!(text("-- why\nSELECT 1\n  -- more\n  FROM SCHEMA.record", "a"), "SELECT 1\nFROM \"a\".record");
}

#[test]
fn a_schema_has_a_plain_name() {
    for name in ["hapax", "_a", "shop_2"] {
        assert!(is_schema(name), "{name}");
    }
    let long = "a".repeat(49);
    for name in ["", "2shop", "Shop", "a b", "a\"b", "a.b", "pg_shop", "é", &long] {
        assert!(!is_schema(name), "{name}");
    }
}
