use std::collections::BTreeSet;
use std::path::Path;

use super::*;
use crate::problem;

const STORE_KINDS: [StoreErrorKind; 8] = [
    StoreErrorKind::Unavailable,
    StoreErrorKind::Unknown,
    StoreErrorKind::Full,
    StoreErrorKind::TooLarge,
    StoreErrorKind::Stopped,
    StoreErrorKind::Incompatible,
    StoreErrorKind::InUse,
    StoreErrorKind::Invalid,
];

const CODES: [Code; 32] = [
    Code::KeyInvalid,
    Code::InputInvalid,
    Code::ConfigInvalid,
    Code::StoreUrlInvalid,
    Code::StoreNotShared,
    Code::StoreMissing,
    Code::StoreDamaged,
    Code::RecordMissing,
    Code::RecordAmbiguous,
    Code::RecordUnreadable,
    Code::RecordChanged,
    Code::InProgress,
    Code::NotUncertain,
    Code::NotConfirmed,
    Code::DrainIncomplete,
    Code::TokenInvalid,
    Code::RequestForged,
    Code::HostUnknown,
    Code::RouteMissing,
    Code::MethodRefused,
    Code::TooLarge,
    Code::AuditFailed,
    Code::AdminExposed,
    Code::ListenFailed,
    Code::AdminUnavailable,
    Code::JournalMissing,
    Code::JournalInUse,
    Code::JournalDamaged,
    Code::JournalUnavailable,
    Code::CallsOpen,
    Code::Failed,
    Code::OutputClosed,
];

/// Codes of the library only, which it has beside those over HTTP.
const LIBRARY: [&str; 4] = ["previously-failed", "deadline", "superseded", "no-global"];

/// Codes of problem documents of the sidecar only.
const SIDECAR: [&str; 3] =
    [problem::AUTHORISE_UNAVAILABLE.name, problem::PATH_AMBIGUOUS.name, problem::TUNNEL_REFUSED.name];

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
    let found: BTreeSet<String> = std::fs::read_dir(pages)
        .unwrap()
        .map(|page| page.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|name| name != "README")
        .collect();
    let store = STORE_KINDS.map(|kind| Code::Store(kind).name());
    let http = hapax::http::Code::ALL.map(hapax::http::Code::name);
    let names = CODES.map(Code::name).into_iter().chain(store).chain(LIBRARY).chain(SIDECAR).chain(http);
    let expected: BTreeSet<String> = names.map(str::to_owned).collect();
    assert_eq!(found, expected);
}

#[test]
fn every_page_has_a_title_and_all_sections() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
    for page in std::fs::read_dir(pages).unwrap() {
        let path = page.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if name == "README" {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with(&format!("# {name}\n")), "{name} has a different title");
        for part in ["## Meaning", "## Cause", "## What to do"] {
            assert!(text.contains(part), "{name} has no section {part}");
        }
    }
}

#[test]
fn e_02_pages_describe_the_http_response() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
    for code in hapax::http::Code::ALL {
        let text = std::fs::read_to_string(pages.join(format!("{code}.md"))).unwrap();
        let (_, http) =
            text.split_once("## Over HTTP\n\n").unwrap_or_else(|| panic!("{code} has no section on HTTP"));
        let status = format!("Status {}", code.status().as_u16());
        assert!(http.starts_with(&status), "{code} does not begin with {status}");
        assert_eq!(http.contains("with `Retry-After`"), code.retryable(), "{code} and Retry-After");
    }
}

#[test]
fn every_page_is_in_the_index() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
    let index = std::fs::read_to_string(pages.join("README.md")).unwrap();
    assert!(index.contains(hapax::http::TYPE_BASE));
    for page in std::fs::read_dir(pages).unwrap() {
        let name = page.unwrap().file_name().into_string().unwrap();
        let code = name.trim_end_matches(".md");
        assert!(code == "README" || index.contains(&format!("| [{code}]({name}) |")), "{code} is not listed");
    }
}

#[test]
fn every_kind_of_store_error_is_tested() {
    let names: BTreeSet<_> = STORE_KINDS.map(StoreErrorKind::name).into();
    let source = include_str!("../../../hapax-core/src/error.rs");
    let arms = source.lines().filter(|line| line.trim().starts_with("Self::") && line.contains("=> \""));
    let known: BTreeSet<_> = arms.filter_map(|line| line.split('"').nth(1)).collect();
    assert_eq!(names, known);
    for kind in STORE_KINDS {
        assert_eq!(Code::Store(kind).name(), format!("store-{}", kind.name().replace('_', "-")));
    }
}

#[test]
fn a_closed_stdout_is_no_failure() {
    let status_of = |kind: io::ErrorKind| status(output(kind.into()).code());
    assert_eq!(status_of(io::ErrorKind::BrokenPipe), 0);
    assert_eq!(status_of(io::ErrorKind::StorageFull), 1);
}
