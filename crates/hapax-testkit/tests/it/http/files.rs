//! The case files are complete, and an error in one names the file and the field.

use std::collections::{BTreeMap, BTreeSet};

use hapax_testkit::http_suite::{Kind, load};

/// How many rules each section of the protocol has, for the sections that apply to an HTTP server.
const SECTIONS: [(char, usize); 10] =
    [('K', 11), ('M', 6), ('S', 7), ('F', 10), ('X', 13), ('R', 12), ('E', 6), ('T', 6), ('D', 7), ('P', 3)];

/// Rules that are invisible from outside a server, and where they are tested instead.
const ELSEWHERE: [(&str, &str); 4] = [
    ("X-12", "record and effect in one transaction: the handler's own store"),
    ("E-06", "the published policy: a document, not an answer"),
    ("D-06", "warnings about unsafe stores: each store's start-up"),
    ("D-07", "settling and deleting: the operator's commands"),
];

#[test]
fn every_rule_has_permitting_and_preventing_cases() {
    let mut kinds: BTreeMap<String, Vec<Kind>> = BTreeMap::new();
    for case in load(&super::cases()).unwrap() {
        kinds.entry(case.rule).or_default().push(case.kind);
    }
    for (section, count) in SECTIONS {
        for number in 1..=count {
            let rule = format!("{section}-{number:02}");
            let kinds = kinds.remove(&rule).unwrap_or_default();
            let is_elsewhere = ELSEWHERE.iter().any(|(elsewhere, _)| *elsewhere == rule);
            for kind in [Kind::Admits, Kind::Refuses] {
                assert_ne!(kinds.contains(&kind), is_elsewhere, "{rule} {kind:?}");
            }
        }
    }
    assert!(kinds.is_empty(), "cases of unknown rules: {kinds:?}");
}

#[test]
fn every_case_has_a_unique_id() {
    let cases = load(&super::cases()).unwrap();
    let ids: BTreeSet<_> = cases.iter().map(|case| &case.id).collect();
    assert_eq!(ids.len(), cases.len());
    let of_files = cases.iter().filter(|case| !case.id.starts_with("structured-fields/")).count();
    assert!(of_files >= 160, "only {of_files} cases");
    assert!(cases.len() - of_files >= 240, "only {} values", cases.len() - of_files);
}

/// The error about a file `k-06-x.toml` with this text.
fn load_error(text: &str) -> String {
    let dir = tempfile::tempdir().expect("a folder for the test");
    std::fs::write(dir.path().join("k-06-x.toml"), text).expect("the file is written");
    match load(dir.path()) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    }
}

const HEAD: &str = "id = 'k-06-x'\nrule = 'K-06'\nkind = 'refuses'\nabout = 'x'\n";

#[test]
fn an_error_names_the_file_and_the_field() {
    let check = |text: &str, field: &str| {
        let complaint = load_error(text);
        assert!(complaint.contains("k-06-x.toml"), "{text}: {complaint}");
        assert!(complaint.contains(field), "{text}: {complaint}");
    };
    let step = |step: &str| format!("{HEAD}[[step]]\n{step}");
    check("id = 'k-06-x'", "missing field `rule`");
    check(&HEAD.replace("refuses", "denies"), "denies");
    check(&format!("{HEAD}wants = []\n"), "wants");
    check(HEAD, "missing field `step`");
    check(&format!("{HEAD}step = []"), "`step`");
    check(&format!("{}[[step]]\nsend = {{}}", HEAD.replace("k-06-x", "k-06-y")), "`id`");
    check(&format!("{}[[step]]\nsend = {{}}", HEAD.replace("K-06", "K-07")), "`rule`");
    check(&format!("{HEAD}needs = ['wings']\n[[step]]\nsend = {{}}"), "wings");
    check(&step("send = { metod = 'POST' }"), "metod");
    check(&step("send = {}\nexpect = { staus = 1 }"), "staus");
    check(&step("send = {}\nrelease = true"), "a step does one thing");
    check(&step("name = 'x'"), "a step does one thing");
    check(&step("send = {}\nbackground = true"), "`background` needs a `name`");
    check(&step("name = 'a'\nsend = {}\nbackground = true"), "`a` is left open");
    check(&step("release = true\nexpect = { status = 200 }"), "only `runs`");
    check(&step("await = 'a'"), "no open request is called `a`");
    check(&step("send = {}\nexpect = { same_as = 'a' }"), "`same_as`");
    check(&step("send = { body = { base64 = '!' } }"), "base64");
    check(&step("advance = '5x'"), "5x");
    check(&step("advance = '5s'"), "clock");
    check(&step("drain = true"), "drain");
    check(&step("store = 'down'"), "store-faults");
    check(&step("send = { raw = 'x' }"), "raw");
    assert_eq!(load_error(&step("send = {}")), "");
}
