use std::sync::Arc;

use hapax_admin::records::Records;
use hapax_core::{Lookup, State, Store as _};
use hapax_store_file::FileStore;
use http::StatusCode;

use super::test_listener::TestListener;
use super::test_listener::records::uncertain;
use super::*;

#[test]
fn only_urls_of_a_listener_are_accepted() {
    for (url, expected) in [
        ("http://127.0.0.1:8081", true),
        ("http://localhost:8081/", true),
        ("http://[::1]:8081", true),
        ("127.0.0.1:8081", false),
        ("https://127.0.0.1:8081", true),
        ("ftp://127.0.0.1:8081", false),
        ("http://127.0.0.1:8081/api", false),
        ("file:./hapax-data", false),
        ("", false),
    ] {
        assert_eq!(AdminClient::new(url, Token::random()).is_ok(), expected, "{url}");
    }
}

#[test]
fn an_unknown_code_keeps_its_message() {
    let problem = Problem {
        kind: "https://hapax.dev/errors/from-the-future".to_owned(),
        title: String::new(),
        status: 418,
        detail: "something new".to_owned(),
        causes: Vec::new(),
        hint: None,
    };
    let failure = failure_of(problem);
    assert_eq!((failure.code(), failure.message()), (Code::Failed, "something new"));
    assert!(failure.causes().next().unwrap().ends_with("from-the-future"));
}

#[tokio::test]
async fn an_http_response_arrives_as_the_settlement_of_a_record() {
    let listener = TestListener::start().await;
    let id = uncertain(&*listener.store, "a").await;
    let client = listener.client();
    let seen = client.show(&id, Payload::Hidden).await.unwrap().record;
    let mut answer = Answer::new(StatusCode::CONFLICT, vec![0, 255]);
    answer.headers.insert("location", "/orders/7".parse().unwrap());
    let verdict =
        Verdict::Applied { recorded: answer.clone().recorded().unwrap(), retention: Duration::from_secs(60) };
    client.settle(&seen, verdict, None).await.unwrap();
    let Lookup::Found { record, .. } = listener.store.get(&id).await.unwrap() else { panic!("gone") };
    assert_eq!(record.state(), State::Failed);
    assert_eq!(Answer::of(record.recorded().unwrap()), Some(answer));
    listener.stop().await;
}

#[tokio::test]
async fn the_client_returns_what_the_store_has() {
    let listener = TestListener::start().await;
    let filled = listener.fill().await;
    let client = listener.client();
    let records = Records::standalone(listener.store.clone(), "memory:");
    let query = Query { limit: 4, ..Default::default() };
    let (remote, local) = (client.page(&query).await.unwrap(), records.page(&query).await.unwrap());
    assert_eq!((remote.records, remote.next), (local.records, local.next));
    let missing = RecordId::parse(&"0".repeat(64)).unwrap();
    let (remote, local) =
        (client.show(&missing, Payload::Hidden).await, records.show(&missing, Payload::Hidden).await);
    assert_eq!(remote.unwrap_err().code(), local.unwrap_err().code());
    let uncertain = client.show(&filled.uncertain, Payload::Hidden).await.unwrap().record;
    client.delete(&uncertain, Some("a test")).await.unwrap();
    assert_eq!(client.delete(&uncertain, None).await.unwrap_err().code(), Code::RecordMissing);
    assert_eq!(listener.state(&filled.uncertain).await, None);
    assert_eq!(listener.state(&filled.released).await, Some(State::Released));
    let wrong = AdminClient::new(&listener.url, Token::random()).unwrap();
    let refused = wrong.show(&filled.lapsed, Payload::Hidden).await.unwrap_err();
    assert_eq!(refused.code(), Code::TokenInvalid);
    listener.stop().await;
}

#[tokio::test]
async fn a_file_store_opens_again_beside_the_audit_log() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(FileStore::open(dir.path()).unwrap());
    let listener = TestListener::over(store, Some(dir.path())).await;
    let id = uncertain(&*listener.store, "a").await;
    let seen = listener.client().show(&id, Payload::Hidden).await.unwrap().record;
    listener.client().settle(&seen, Verdict::NotApplied, None).await.unwrap();
    listener.stop().await;
    assert!(dir.path().join("audit.jsonl").exists());
    let again = FileStore::open_read_only(dir.path()).unwrap();
    assert_eq!(again.verify().await.unwrap(), Vec::<String>::new());
    assert!(matches!(again.get(&id).await.unwrap(), Lookup::Found { .. }));
}
