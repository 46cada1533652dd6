//! `hapax plan`, `hapax migrate` and `hapax man`.

use crate::binary::hapax;
use crate::fixture::Fixture;

#[test]
fn a_plan_needs_no_store() {
    let fixture = Fixture::bare();
    let args = ["plan", "--rate", "500/s", "--retention", "24h", "--body", "2KiB"];
    let text = hapax(fixture.path(), &args).ended(0).stdout;
    assert!(text.contains("file:DIR") && text.contains("43200000") && text.contains("GiB"), "{text}");
    let needs = hapax(fixture.path(), &[&args[..], &["--json"]].concat()).ended(0).json();
    assert_eq!(needs[0]["store"], "memory:");
    assert_eq!((&needs[0]["fits"], &needs[1]["fits"]), (&false.into(), &true.into()));
    assert_eq!(hapax(fixture.path(), &["plan", "--rate", "often"]).code, 2);
    assert!(!fixture.store().exists());
}

#[test]
fn a_store_of_this_version_needs_no_migration() {
    let fixture = Fixture::empty();
    for args in [&["migrate"][..], &["migrate", "--dry-run"]] {
        let text = hapax(fixture.path(), args).ended(0).stdout;
        assert_eq!(text, "file:./hapax-data is at version 4, the newest: nothing to do\n");
    }
    let migration = hapax(fixture.path(), &["migrate", "--dry-run", "--json"]).ended(0).json();
    assert_eq!((&migration["version"], &migration["changes"]), (&4.into(), &serde_json::json!([])));
    hapax(fixture.path(), &["migrate", "--store", "file:nowhere"]).failed(5, "store-missing");
    hapax(fixture.path(), &["migrate", "--store", "memory:"]).failed(2, "store-not-shared");
}

#[test]
fn the_manual_lists_every_command() {
    let fixture = Fixture::bare();
    let page = hapax(fixture.path(), &["man"]).ended(0).stdout;
    let commands = ["serve", "key", "records", "sweep", "check", "plan", "migrate", "man", "completions"];
    for command in commands {
        assert!(page.contains(&format!("hapax\\-{command}(1)")), "{command} is not in {page}");
    }
    for _made_or_there in 0..2 {
        hapax(fixture.path(), &["man", "--dir", "share/man1"]).ended(0);
    }
    let pages = std::fs::read_dir(fixture.path().join("share/man1")).unwrap().count();
    assert!(pages > commands.len(), "{pages}");
    std::fs::write(fixture.path().join("file"), "").unwrap();
    hapax(fixture.path(), &["man", "--dir", "file"]).failed(2, "input-invalid");
}
