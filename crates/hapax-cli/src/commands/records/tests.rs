//! The commands against a running sidecar.

use clap::Parser as _;
use hapax_core::State;

use crate::admin_client::test_listener::records::{key, uncertain};
use crate::admin_client::test_listener::{TOKEN, TestListener};
use crate::args::Args;
use crate::failure::{Code, Failure};

/// Runs `hapax ARGS` as the program does, on another thread than the listener.
async fn hapax(args: &[&str]) -> Result<(), Failure> {
    let args = Args::try_parse_from([&["hapax"], args].concat()).unwrap();
    tokio::task::spawn_blocking(|| crate::commands::run(args)).await.unwrap()
}

/// A file that holds the token.
fn token() -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, TOKEN).unwrap();
    file
}

#[tokio::test]
async fn every_command_works_against_a_sidecar() {
    let show = TestListener::start().await;
    let it = show.fill().await;
    let other = uncertain(&*show.store, "other").await;
    let file = token();
    let sidecar = ["--admin", &show.url, "--admin-token-file", file.path().to_str().unwrap()];
    let run = async |args: &[&str]| hapax(&[&["records"], args, &sidecar].concat()).await;
    run(&["list"]).await.unwrap();
    run(&["list", "--json", "--all", "--limit", "2", "--state", "uncertain"]).await.unwrap();
    run(&["show", "--key", &key("completed"), "--payload"]).await.unwrap();
    run(&["show", &it.failed.to_string()[..12], "--json"]).await.unwrap();
    let id = it.uncertain.to_string();
    run(&["settle", &id, "--applied", "--json-value", "1", "--yes", "--reason", "a test"]).await.unwrap();
    assert_eq!(show.state(&it.uncertain).await, Some(State::Completed));
    run(&["release", &it.lapsed.to_string(), "--yes"]).await.unwrap();
    assert_eq!(show.state(&it.lapsed).await, Some(State::Released));
    run(&["settle", &other.to_string(), "--not-applied", "--yes", "--json"]).await.unwrap();
    assert_eq!(show.state(&other).await, Some(State::Released));
    run(&["delete", &it.completed.to_string(), "--yes"]).await.unwrap();
    assert_eq!(show.state(&it.completed).await, None);
    let entries = show.client().audit().await.unwrap();
    let actions: Vec<_> = entries.iter().map(|entry| entry["action"].clone()).collect();
    assert_eq!(
        actions,
        ["delete", "settle_not_applied", "settle_not_applied", "settle_applied", "show_payload"]
    );
    assert_eq!(entries[3]["reason"], "a test");
    show.stop().await;
}

#[tokio::test]
async fn a_sidecar_refuses_with_the_same_codes_as_a_store() {
    let show = TestListener::start().await;
    let it = show.fill().await;
    let file = token();
    let sidecar = ["--admin", &show.url, "--admin-token-file", file.path().to_str().unwrap()];
    let (missing, at_work) = ("0".repeat(64), it.in_progress.to_string());
    for (args, code) in [
        (&["show", &missing][..], Code::RecordMissing),
        (&["show", "--key", "never-used"], Code::RecordMissing),
        (&["delete", &at_work, "--yes"], Code::InProgress),
        (&["release", &it.completed.to_string(), "--yes"], Code::NotUncertain),
        (&["list", "--cursor", "x"], Code::Store(hapax_core::StoreErrorKind::Invalid)),
    ] {
        let refused = hapax(&[&["records"], args, &sidecar].concat()).await.unwrap_err();
        assert_eq!(refused.code(), code, "{args:?}");
    }
    show.stop().await;
}

#[tokio::test]
async fn an_unreachable_sidecar_and_a_wrong_token_are_reported() {
    let show = TestListener::start().await;
    let (url, file) = (show.url.clone(), token());
    let wrong = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&wrong, "another-token-0123").unwrap();
    let list = async |url: &str, file: &tempfile::NamedTempFile| {
        let file = file.path().to_str().unwrap();
        hapax(&["records", "list", "--admin", url, "--admin-token-file", file]).await.unwrap_err().code()
    };
    assert_eq!(list(&url, &wrong).await, Code::TokenInvalid);
    assert_eq!(list("file:./hapax-data", &file).await, Code::InputInvalid);
    show.stop().await;
    assert_eq!(list(&url, &file).await, Code::AdminUnavailable);
}

#[tokio::test]
async fn a_reason_that_would_not_be_recorded_is_refused() {
    let refused = hapax(&["records", "delete", &"0".repeat(64), "--yes", "--reason", "x"]).await.unwrap_err();
    assert_eq!(refused.code(), Code::InputInvalid);
}
