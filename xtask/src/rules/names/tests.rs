use super::*;

fn ids(path: &str) -> String {
    let ids: Vec<String> = RuleId::named_by(path).iter().map(RuleId::to_string).collect();
    ids.join(" ")
}

#[test]
fn an_id_is_a_letter_and_two_digits() {
    assert_eq!(RuleId::parse("K-06").unwrap().to_string(), "K-06");
    for wrong in ["K-6", "K-006", "k-06", "KK-06", "K06", "K-0x", "K-+1", "", "-"] {
        assert_eq!(RuleId::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn rule_ids_are_prefixes_of_path_segments() {
    assert_eq!(ids("key::k_06_more_than_one_key_is_refused"), "K-06");
    assert_eq!(ids("key::k_01_k_04_agrees_with_a_parser"), "K-01 K-04");
    assert_eq!(ids("x_02::s_01_and_x_03"), "X-02 S-01");
    assert_eq!(ids("k_06"), "K-06");
    for none in ["key::quoted", "key::a_16_byte_key", "takes_k_06", "k_6_x", "k_060_x", "k", ""] {
        assert_eq!(ids(none), "", "{none}");
    }
}

#[test]
fn reads_passed_tests_of_both_runners() {
    let mut passed = PassedTests::default();
    for line in [
        "        PASS [   0.004s] ( 3/65) hapax-core::it key::k_01_one",
        "        LEAK [   0.104s] hapax::it http::k_02_two",
        "        FAIL [   0.004s] ( 4/65) hapax-core::it key::k_03_three",
        "test key::k_04_four ... ok",
        "test key::k_05_five - should panic ... ok",
        "test key::k_06_six ... FAILED",
        "test key::k_07_seven ... ignored",
        "    test key::k_08_shown_by_nextest ... ok",
    ] {
        passed.read(line);
    }
    let names: Vec<&str> = passed.tests().map(|(name, _)| name).collect();
    let expected =
        ["hapax-core::it key::k_01_one", "hapax::it http::k_02_two", "key::k_04_four", "key::k_05_five"];
    assert_eq!(names, expected);
    assert!(passed.tests().all(|(_, ids)| ids.len() == 1));
}
