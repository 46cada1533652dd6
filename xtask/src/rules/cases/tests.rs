use std::path::PathBuf;

use super::*;

fn fresh(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("xtask-cases-{name}-{}", std::process::id()))
}

#[test]
fn reads_one_case_per_line_of_tsv_files() {
    let folder = fresh("read");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("axum.tsv"), "K-06\tlist\tpassed\nK-01\tquoted\tfailed\nK-06\tlist\tpassed\n")
        .unwrap();
    fs::write(folder.join("tonic.tsv"), "K-06\tlist\tskipped: one line only\n").unwrap();
    fs::write(folder.join("notes.md"), "K-06").unwrap();
    let cases = read(&folder).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    let shown: Vec<String> =
        cases.iter().map(|case| format!("{} {case} {}", case.rule, case.result)).collect();
    let expected =
        ["K-01 axum quoted failed", "K-06 axum list passed", "K-06 tonic list skipped: one line only"];
    assert_eq!(shown, expected);
}

#[test]
fn a_missing_folder_has_no_reports() {
    assert_eq!(read(&fresh("absent")).unwrap(), []);
}

#[test]
fn an_unreadable_line_is_reported_with_its_number() {
    for line in
        ["K-06\tlist", "K-6\tlist\tpassed", "K-06\t\tpassed", "K-06\tlist\tok", "K-06\tlist\tskipped:"]
    {
        let error = parse("axum", &format!("\n{line}\n")).unwrap_err().to_string();
        assert!(error.starts_with("case report axum, line 2 is unreadable"), "{line}: {error}");
    }
    assert!(parse("axum", "K-06\tlist\tpassed\tmore").is_err());
}
