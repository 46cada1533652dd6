use super::*;

#[test]
fn every_target_has_a_bin_entry_and_seeds() {
    let root = crate::root().unwrap();
    let manifest = fs::read_to_string(root.join("fuzz/Cargo.toml")).unwrap();
    let targets = targets(&root).unwrap();
    for target in &targets {
        let bin = format!("[[bin]]\nname = \"{target}\"\npath = \"fuzz_targets/{target}.rs\"\n");
        assert!(manifest.contains(&bin), "{target} is not in fuzz/Cargo.toml");
        let seeds = programs::entries(&root.join("fuzz/seeds").join(target)).unwrap();
        assert!(!seeds.is_empty(), "fuzz/seeds/{target} has no seed");
    }
    assert_eq!(manifest.matches("[[bin]]").count(), targets.len());
    let seeded = programs::entries(&root.join("fuzz/seeds")).unwrap();
    assert_eq!(seeded.len(), targets.len(), "a folder of seeds has no target: {seeded:?}");
}

#[test]
fn an_unknown_target_is_an_error() {
    let all = || vec!["key_header".to_owned(), "problem".to_owned()];
    assert_eq!(chosen(all(), None).unwrap(), all());
    assert_eq!(chosen(all(), Some("problem")).unwrap(), ["problem"]);
    let error = chosen(all(), Some("key_heade")).unwrap_err().to_string();
    assert!(error.starts_with("unknown fuzz target `key_heade`: did you mean `key_header`?"), "{error}");
}

#[test]
fn flags_parse_with_space_or_equals_sign() {
    let read = |flags: &[&'static str]| read_flags(flags).map_err(|error| error.to_string());
    assert_eq!(read(&["--seconds", "20"]), Ok(Flags { seconds: 20, target: None }));
    let one = Flags { seconds: 9, target: Some("problem") };
    assert_eq!(read(&["--target=problem", "--seconds=9"]), Ok(one));
    for wrong in [&["--seconds"][..], &["--seconds", "long"], &["--seconds=0"], &["--rounds", "3"], &[]] {
        assert!(read(wrong).is_err(), "{wrong:?}");
    }
}
