use hapax_testkit::servers::PostgresServer;

use super::{Sql, is_schema, text};
use crate::PostgresStore;

#[test]
fn statements_name_their_schema_and_have_no_comments() {
    let sql = Sql::new("shop");
    for statement in [
        &sql.claim,
        &sql.fetch,
        &sql.write,
        &sql.complete_one,
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
        for left_out in ["--", "SCHEMA", "OPEN_ONLY", "FETCH_RECORDS"] {
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

/// There may be thousands of unsettled open records. A plan that scans them is chosen while they are few, and then also
/// for each record of a batch.
#[tokio::test]
async fn records_are_found_by_id_and_not_by_scanning_open_ones() {
    let server = PostgresServer::shared();
    PostgresStore::options(&server.url()).unwrap().schema("plans").connect().await.unwrap();
    let sql = Sql::new("plans");
    let cases = [
        (
            &sql.write,
            "bytea[], bytea[], smallint[], smallint[], bigint[], bytea[], text, text",
            "'{a,b}', '{a,b}', '{2,2}', '{0,0}', '{1,1}', '{a,b}', '1s', 'c'",
            2,
        ),
        (
            &sql.complete_one,
            "bytea, bytea, smallint, bigint, bytea, text, text",
            "'a', 'b', '2', '1', 'c', '1s', 'd'",
            1,
        ),
        (&sql.watch, "bytea, text", "'a', '1s'", 1),
    ];
    for (statement, types, arguments, scans) in cases {
        let explained = server.sql(&format!(
            "SET enable_seqscan = off;
            PREPARE statement ({types}) AS {statement};
            EXPLAIN EXECUTE statement ({arguments})"
        ));
        assert_eq!(explained.matches("Scan using record_pkey").count(), scans, "{explained}");
        assert!(!explained.contains("record_open"), "{explained}");
    }
}
