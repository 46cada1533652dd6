//! Rules about Markdown: no dead links, and every error page is linked.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use crate::tree::{File, check, files, root, sample};

/// The relative targets of all links in a Markdown text, without their anchors. Code blocks are skipped.
fn links(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        let inline = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
        // `[name]: target`, the other form.
        let reference = line.trim_start().strip_prefix('[').and_then(|rest| rest.split_once("]: "));
        found.extend(inline.chain(reference.map(|(_, target)| target.trim())));
    }
    let is_relative = |target: &&str| !target.contains("://") && !target.starts_with("mailto:");
    let targets = found.into_iter().filter(is_relative).filter_map(|target| target.split('#').next());
    targets.filter(|target| !target.is_empty()).collect()
}

/// The target of a link in the file `from`, relative to the root.
fn resolve(from: &str, target: &str) -> PathBuf {
    let folder = Path::new(from).parent().unwrap_or(Path::new(""));
    let mut resolved = PathBuf::new();
    for part in folder.join(target).components() {
        match part {
            Component::ParentDir => drop(resolved.pop()),
            Component::CurDir => {}
            part => resolved.push(part),
        }
    }
    resolved
}

fn dead_links(file: &File, exists: impl Fn(&Path) -> bool) -> Vec<String> {
    if !file.path.ends_with(".md") {
        return Vec::new();
    }
    let dead = links(&file.text).into_iter().filter(|target| !exists(&resolve(&file.path, target)));
    dead.map(|target| format!("{}: dead link to `{target}`", file.path)).collect()
}

/// Pages under `docs/errors` without a link from another page.
fn unlinked_error_pages(files: &[File]) -> Vec<String> {
    let mut linked = BTreeSet::new();
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        let targets = links(&file.text).into_iter().map(|target| resolve(&file.path, target));
        linked.extend(targets.filter(|target| target != Path::new(&file.path)));
    }
    let is_page = |path: &str| path.starts_with("docs/errors/") && !path.ends_with("README.md");
    let pages = files.iter().filter(|file| is_page(&file.path));
    let lost = pages.filter(|page| !linked.contains(Path::new(&page.path)));
    lost.map(|page| format!("{}: no page links to it", page.path)).collect()
}

/// The workspace crates that Rust code in a Markdown text uses. Their names in code have `_` for `-`.
fn crates_in_code(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut is_rust = false;
    for line in text.lines() {
        if let Some(language) = line.strip_prefix("```") {
            is_rust = language.starts_with("rust");
        } else if is_rust {
            let words = line.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
            let ours = words.filter(|word| *word == "hapax_core" || word.starts_with("hapax_store_"));
            found.extend(ours.map(|word| word.replace('_', "-")));
        }
    }
    found
}

/// Store pages without a `cargo add` for a crate that their code uses.
fn crates_without_cargo_add(file: &File) -> Vec<String> {
    if !file.path.starts_with("docs/guide/") || !STORE_PAGES.iter().any(|page| file.path.ends_with(page)) {
        return Vec::new();
    }
    let added: BTreeSet<&str> =
        file.text.split("cargo add ").skip(1).flat_map(|rest| rest.split(['\n', '`']).take(1)).collect();
    let is_added = |name: &String| added.iter().any(|line| line.split(' ').any(|word| word == name));
    let missing = crates_in_code(&file.text).into_iter().filter(|name| !is_added(name));
    missing.map(|name| format!("{}: no `cargo add {name}`", file.path)).collect()
}

/// The pages with Rust code for a store.
const STORE_PAGES: [&str; 3] = ["/dynamodb.md", "/postgres.md", "/redis.md"];

#[test]
fn store_pages_have_a_cargo_add_for_each_crate() {
    check(crates_without_cargo_add);
}

#[test]
fn crates_without_cargo_add_are_reported() {
    let count = |text: &str| crates_without_cargo_add(&sample("docs/guide/redis.md", text)).len();
    let code = "```rust,no_run\nuse hapax_store_redis::RedisStore;\n```\n";
    assert_eq!(count(code), 1);
    assert_eq!(count(&format!("```sh\ncargo add hapax-store\n```\n{code}")), 1);
    assert_eq!(count(&format!("```sh\ncargo add hapax hapax-store-redis\n```\n{code}")), 0);
    assert_eq!(count(&format!("After `cargo add hapax-store-redis`:\n{code}")), 0);
    assert_eq!(count("```toml\nuse hapax_store_redis\n```\nhapax_store_redis"), 0);
}

#[test]
fn no_dead_links() {
    check(|file| dead_links(file, |path| root().join(path).exists()));
}

#[test]
fn dead_links_are_reported() {
    let exists = |path: &Path| path == Path::new("spec/protocol.md");
    let dead = |text: &str| dead_links(&sample("docs/guide/start.md", text), exists);
    assert!(dead("[a](../../spec/protocol.md#keys) [b](https://example.com/x) [c](#here)").is_empty());
    assert_eq!(dead("[a](../spec/protocol.md)").len(), 1);
    assert_eq!(dead("[a](../../spec/protocol.md) and [b](gone.md)").len(), 1);
    assert_eq!(dead("[a]: gone.md").len(), 1);
    assert!(dead("```\n[a](gone.md)\n```").is_empty());
}

#[test]
fn every_error_page_is_linked() {
    let lost = unlinked_error_pages(&files());
    assert!(lost.is_empty(), "\n{}\n", lost.join("\n"));
}

#[test]
fn unlinked_error_pages_are_reported() {
    let page = || sample("docs/errors/in-use.md", "See [this page](in-use.md).");
    assert_eq!(unlinked_error_pages(&[page()]).len(), 1);
    let index = sample("docs/errors/README.md", "- [in use](in-use.md)");
    assert!(unlinked_error_pages(&[page(), index]).is_empty());
}

/// The store crates that a page does not name.
fn unnamed_stores(files: &[File], page: &str) -> Vec<String> {
    let text = files.iter().find(|file| file.path == page).map_or("", |file| &file.text);
    let manifests = files.iter().filter_map(|file| file.path.strip_suffix("/Cargo.toml"));
    let stores = manifests.filter_map(|folder| folder.strip_prefix("crates/"));
    let unnamed =
        stores.filter(|name| name.starts_with("hapax-store-") && !text.contains(&format!("`{name}`")));
    unnamed.map(|name| format!("{page}: `{name}` is not named")).collect()
}

#[test]
fn front_pages_name_every_store() {
    let files = files();
    let unnamed: Vec<_> = ["README.md", "crates/hapax/src/lib.rs"]
        .iter()
        .flat_map(|page| unnamed_stores(&files, page))
        .collect();
    assert!(unnamed.is_empty(), "\n{}\n", unnamed.join("\n"));
}

#[test]
fn unnamed_stores_are_reported() {
    let store = || sample("crates/hapax-store-file/Cargo.toml", "");
    assert_eq!(unnamed_stores(&[store(), sample("README.md", "")], "README.md").len(), 1);
    assert!(unnamed_stores(&[store(), sample("README.md", "`hapax-store-file`")], "README.md").is_empty());
}
