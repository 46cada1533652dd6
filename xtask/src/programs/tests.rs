use std::fs;

use super::examples;

#[test]
fn examples_are_rs_files_and_folders_with_a_main() {
    let root = std::env::temp_dir().join(format!("xtask-examples-{}", std::process::id()));
    let folder = root.join("crates/one/examples");
    fs::create_dir_all(folder.join("large")).unwrap();
    fs::create_dir_all(folder.join("data")).unwrap();
    fs::create_dir_all(root.join("crates/two")).unwrap();
    for file in ["small.rs", "large/main.rs", "data/order.json", "README.md"] {
        fs::write(folder.join(file), "").unwrap();
    }
    let found = examples(&root).unwrap();
    fs::remove_dir_all(&root).unwrap();
    assert_eq!(found, ["large", "small"]);
}
