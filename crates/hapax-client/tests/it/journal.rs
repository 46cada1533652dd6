//! The journal: calls that outlive their process.

use std::convert::Infallible;
use std::fs;
use std::future::ready;
use std::path::Path;
use std::time::{Duration, SystemTime};

use hapax_client::{
    Client, Error, JournalError, Key, MismatchFoundBy, OpenCall, OpenCallState, Resumed, UncertainCause,
};
use tempfile::TempDir;

use crate::server::{Server, Step, answer, builder, problem, refusing_url, status};

fn open(directory: &Path) -> Client {
    try_open(directory).unwrap()
}

fn try_open(directory: &Path) -> Result<Client, Error> {
    builder().journal(format!("file:{}", directory.display())).build()
}

fn key(name: &str) -> Key {
    Key::new(name).unwrap()
}

fn states(client: &Client) -> Vec<(Key, OpenCallState)> {
    client.open_calls().into_iter().map(|OpenCall { key, state, .. }| (key, state)).collect()
}

/// Resumes all calls, each dealt with.
async fn resume(client: &Client) -> Vec<Resumed> {
    let mut ends = Vec::new();
    let Ok(()) = client
        .resume(|resumed| {
            ends.push(resumed);
            ready(Ok::<_, Infallible>(()))
        })
        .await;
    ends
}

/// A call that loses every answer, in a process that ends.
async fn lost_call(directory: &Path, server: &Server, name: &str) {
    let client = open(directory);
    let call = client.post(server.url("/orders")).key(key(name)).header("x-trace", "7");
    let error = call.json(&name).bearer_auth("hidden").send().await.unwrap_err();
    assert!(matches!(error, Error::Uncertain { cause: UncertainCause::Transport, .. }), "{error}");
}

fn lost() -> [Step; 3] {
    [Step::CloseRead, Step::CloseRead, Step::CloseRead]
}

#[tokio::test]
async fn c_01_a_restarted_process_sends_the_same_key_and_bytes() {
    let directory = TempDir::new().unwrap();
    let server = Server::with(lost().into_iter().chain([status(201)])).await;
    lost_call(directory.path(), &server, "a").await;

    let client = open(directory.path());
    assert_eq!(states(&client), [(key("a"), OpenCallState::Open)]);
    let resumed = resume(&client).await;
    assert_eq!(resumed[0].call.key, key("a"));
    assert_eq!(resumed[0].result.as_ref().unwrap().status(), 201);
    let seen = server.seen();
    let without_credentials = |index: usize| {
        let mut request = seen[index].clone();
        request.fields.retain(|(name, _)| name != "authorization");
        request
    };
    assert_eq!(seen[3], without_credentials(0));
    assert_eq!(seen[0].field("authorization"), Some("Bearer hidden"));

    assert_eq!(states(&client), []);
    assert!(resume(&client).await.is_empty());
    drop(client);
    assert_eq!(states(&open(directory.path())), []);
}

#[tokio::test]
async fn credentials_come_from_the_default_fields_and_are_not_on_disk() {
    let directory = TempDir::new().unwrap();
    let server = Server::with(lost().into_iter().chain([status(201)])).await;
    lost_call(directory.path(), &server, "a").await;
    let bytes = fs::read(directory.path().join("calls.log")).unwrap();
    assert!(!bytes.windows(6).any(|window| window == b"hidden"));

    let defaults = http::HeaderMap::from_iter([(
        http::header::AUTHORIZATION,
        http::HeaderValue::from_static("Bearer new"),
    )]);
    let http = reqwest::Client::builder().no_proxy().default_headers(defaults).build().unwrap();
    let client =
        builder().http(http).journal(format!("file:{}", directory.path().display())).build().unwrap();
    resume(&client).await[0].result.as_ref().unwrap();
    assert_eq!(server.seen()[3].field("authorization"), Some("Bearer new"));
}

#[tokio::test]
async fn a_call_is_on_disk_before_it_is_sent() {
    let directory = TempDir::new().unwrap();
    let server = Server::with([Step::Hang]).await;
    let client = open(directory.path());
    let call = client.post(server.url("/")).key(key("a")).body("book");
    let running = tokio::spawn(call.send());
    while server.count() == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(states(&client), [(key("a"), OpenCallState::Running)]);
    assert!(resume(&client).await.is_empty(), "a call that runs is not made twice");
    // What a process that ends now leaves behind.
    let copy = TempDir::new().unwrap();
    fs::copy(directory.path().join("calls.log"), copy.path().join("calls.log")).unwrap();
    assert_eq!(states(&open(copy.path())), [(key("a"), OpenCallState::Open)]);

    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    assert_eq!(states(&client), [(key("a"), OpenCallState::Open)]);
}

#[tokio::test]
async fn answered_and_refused_calls_are_closed() {
    let directory = TempDir::new().unwrap();
    let client = open(directory.path());
    let refusals =
        [problem(400, "key-invalid", &[]), problem(422, "key-reused", &[]), status(404), status(201)];
    let server = Server::with(refusals).await;
    for name in ["a", "b", "c", "d"] {
        // The answers are tested elsewhere.
        let _ = client.post(server.url("/")).key(key(name)).send().await;
    }
    assert_eq!(server.count(), 4);
    drop(client);
    assert_eq!(states(&open(directory.path())), []);
}

#[tokio::test]
async fn c_04_an_uncertain_call_stays_listed_until_it_is_forgotten() {
    let directory = TempDir::new().unwrap();
    let server = Server::with([problem(409, "uncertain", &[]), status(201)]).await;
    let client = open(directory.path());
    client.post(server.url("/")).key(key("a")).send().await.unwrap_err();
    drop(client);

    let client = open(directory.path());
    assert_eq!(states(&client), [(key("a"), OpenCallState::Uncertain)]);
    assert!(resume(&client).await.is_empty());
    assert_eq!(server.count(), 1);
    client.forget(&client.open_calls()[0]).await.unwrap();
    drop(client);
    assert_eq!(states(&open(directory.path())), []);
}

#[tokio::test]
async fn c_03_a_call_that_the_server_said_not_to_retry_is_not_resumed() {
    let directory = TempDir::new().unwrap();
    let told = answer(502, &[("x-should-retry", "false")], "");
    let server = Server::with([told]).await;
    let client = open(directory.path());
    client.post(server.url("/")).key(key("a")).send().await.unwrap_err();
    assert_eq!(states(&client), [(key("a"), OpenCallState::Uncertain)]);
    assert!(resume(&client).await.is_empty());
}

#[tokio::test]
async fn c_04_a_call_past_its_lifetime_becomes_uncertain_and_is_not_sent() {
    let directory = TempDir::new().unwrap();
    let day = Duration::from_secs(24 * 3600);
    let patient = builder().lifetime(day * 30).journal(format!("file:{}", directory.path().display()));
    let url = refusing_url().await;
    let call = patient.build().unwrap().post(&url).key(key("a")).key_made_at(SystemTime::now() - day * 2);
    assert!(matches!(call.send().await, Err(Error::Exhausted { .. })));

    let client = open(directory.path());
    let resumed = resume(&client).await;
    let error = resumed[0].result.as_ref().unwrap_err();
    assert!(
        matches!(error, Error::Uncertain { cause: UncertainCause::Lifetime, attempts: 0, .. }),
        "{error}"
    );
    assert_eq!(error.key(), Some(&key("a")));
    assert_eq!(states(&client), [(key("a"), OpenCallState::Uncertain)]);
    assert!(resume(&client).await.is_empty());
}

#[tokio::test]
async fn c_01_a_repeated_key_continues_its_call_with_the_same_body_only() {
    let directory = TempDir::new().unwrap();
    let server = Server::with(lost().into_iter().chain([status(200), status(201)])).await;
    lost_call(directory.path(), &server, "a").await;
    let client = open(directory.path());

    let error = client.post(server.url("/orders")).key(key("a")).json("other").send().await.unwrap_err();
    assert!(matches!(error, Error::Mismatch { by: MismatchFoundBy::Journal, .. }), "{error}");
    assert_eq!(server.count(), 3);

    // Another path is another operation.
    client.post(server.url("/mails")).key(key("a")).json("other").send().await.unwrap();
    assert_eq!(client.open_calls().len(), 1);
    client.post(server.url("/orders")).key(key("a")).json("a").send().await.unwrap();
    assert_eq!(states(&client), []);
}

#[tokio::test]
async fn c_04_a_repeated_key_keeps_its_age() {
    let directory = TempDir::new().unwrap();
    let day = Duration::from_secs(24 * 3600);
    let patient = builder().lifetime(day * 30).journal(format!("file:{}", directory.path().display()));
    let url = refusing_url().await;
    let call = patient.build().unwrap().post(&url).key(key("a")).key_made_at(SystemTime::now() - day * 2);
    assert!(matches!(call.send().await, Err(Error::Exhausted { .. })));

    let error = open(directory.path()).post(&url).key(key("a")).send().await.unwrap_err();
    assert!(
        matches!(error, Error::Uncertain { cause: UncertainCause::Lifetime, attempts: 0, .. }),
        "{error}"
    );
}

#[tokio::test]
async fn a_journal_has_one_owner() {
    let directory = TempDir::new().unwrap();
    let client = open(directory.path());
    let error = try_open(directory.path()).unwrap_err();
    assert!(matches!(error, Error::Journal(JournalError::InUse { .. })), "{error:?}");
    drop(client);
    open(directory.path());
}

#[tokio::test]
async fn a_stream_is_refused_before_it_is_sent() {
    let directory = TempDir::new().unwrap();
    let (client, server) = (open(directory.path()), Server::with([]).await);
    for call in
        [client.post(server.url("/")).body_once("x"), client.post(server.url("/")).body_stream(|| "x".into())]
    {
        let error = call.send().await.unwrap_err();
        assert!(matches!(error, Error::Journal(JournalError::StreamedBody)), "{error:?}");
    }
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn damage_is_reported_and_not_repaired() {
    let directory = TempDir::new().unwrap();
    let server = Server::with(lost().into_iter().chain(lost())).await;
    lost_call(directory.path(), &server, "a").await;
    lost_call(directory.path(), &server, "b").await;
    let log = directory.path().join("calls.log");
    let mut bytes = fs::read(&log).unwrap();
    bytes[40] ^= 1;
    fs::write(&log, &bytes).unwrap();

    let error = try_open(directory.path()).unwrap_err();
    assert!(matches!(error, Error::Journal(JournalError::Damaged { at: 24, .. })), "{error:?}");
    assert_eq!(fs::read(&log).unwrap(), bytes);

    fs::write(&log, "something else").unwrap();
    let error = try_open(directory.path()).unwrap_err();
    assert!(matches!(error, Error::Journal(JournalError::Foreign { .. })), "{error:?}");
}

#[tokio::test]
async fn a_torn_tail_loses_nothing_that_was_sent() {
    let directory = TempDir::new().unwrap();
    let server = Server::with(lost()).await;
    lost_call(directory.path(), &server, "a").await;
    let log = directory.path().join("calls.log");
    let synced = fs::read(&log).unwrap();
    // The start of a call that was being written.
    for length in (1..synced.len() - 24).step_by(31) {
        fs::write(&log, [&synced[..], &synced[24..24 + length]].concat()).unwrap();
        assert_eq!(states(&open(directory.path())), [(key("a"), OpenCallState::Open)], "cut at {length}");
    }
}

#[tokio::test]
async fn a_file_that_lost_its_end_is_damaged() {
    let directory = TempDir::new().unwrap();
    let server = Server::with(lost()).await;
    lost_call(directory.path(), &server, "a").await;
    let log = directory.path().join("calls.log");
    let synced = fs::read(&log).unwrap();
    for length in (1..synced.len()).step_by(7) {
        fs::write(&log, &synced[..length]).unwrap();
        let opened = try_open(directory.path());
        assert!(matches!(opened, Err(Error::Journal(JournalError::Damaged { .. }))), "cut at {length}");
    }
    fs::write(&log, "").unwrap();
    assert_eq!(states(&open(directory.path())), [], "an empty file is a new journal");
}

#[tokio::test]
async fn the_log_does_not_grow_with_calls_that_ended() {
    let directory = TempDir::new().unwrap();
    let client = open(directory.path());
    let server = Server::with(lost().into_iter().chain(std::iter::repeat_n(status(200), 60))).await;
    client.post(server.url("/")).key(key("open")).body("book").send().await.unwrap_err();
    let large = "x".repeat(100_000);
    let log = directory.path().join("calls.log");
    for _ in 0..60 {
        client.post(server.url("/")).body(large.clone()).send().await.unwrap();
        assert!(fs::metadata(&log).unwrap().len() < 1_300_000);
    }
    assert_eq!(states(&client), [(key("open"), OpenCallState::Open)]);
    drop(client);

    let client = open(directory.path());
    assert_eq!(states(&client), [(key("open"), OpenCallState::Open)]);
    assert!(fs::metadata(&log).unwrap().len() < 1_000);
}

#[tokio::test]
async fn concurrent_calls_are_all_recorded() {
    let directory = TempDir::new().unwrap();
    let client = open(directory.path());
    let server = Server::with(std::iter::repeat_n(Step::Hang, 20)).await;
    let calls: Vec<_> = (0..20)
        .map(|number| tokio::spawn(client.post(server.url("/")).key(key(&format!("k{number}"))).send()))
        .collect();
    while server.count() < 20 {
        tokio::task::yield_now().await;
    }
    calls.iter().for_each(|call| call.abort());
    for call in calls {
        assert!(call.await.unwrap_err().is_cancelled());
    }
    drop(client);
    assert_eq!(open(directory.path()).open_calls().len(), 20);
}

#[tokio::test]
async fn a_journal_is_named_as_a_file() {
    for url in ["", "file:", "redis://localhost", "/tmp/journal"] {
        let error = builder().journal(url).build().unwrap_err();
        assert!(matches!(error, Error::Journal(JournalError::Url { .. })), "{error:?}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_reads_the_files() {
    use std::os::unix::fs::PermissionsExt;

    let parent = TempDir::new().unwrap();
    let directory = parent.path().join("a/journal");
    let _client = open(&directory);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    for file in fs::read_dir(&directory).unwrap() {
        assert_eq!(mode(&file.unwrap().path()), 0o600);
    }
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused_before_it_is_sent() {
    let directory = TempDir::new().unwrap();
    let (client, server) = (open(directory.path()), Server::with([status(200)]).await);
    let error = client.post(server.url("/")).body(vec![0; 65 << 20]).send().await.unwrap_err();
    assert!(matches!(error, Error::Journal(JournalError::TooLarge { .. })), "{error:?}");
    assert_eq!((server.count(), client.open_calls().len()), (0, 0));
    client.post(server.url("/")).body("book").send().await.unwrap();
}

#[tokio::test]
async fn a_resumed_call_that_is_denied_stays_open() {
    let directory = TempDir::new().unwrap();
    let denied = [401, 403, 407].map(status);
    let server = Server::with(lost().into_iter().chain(denied).chain([status(201)])).await;
    lost_call(directory.path(), &server, "a").await;

    let client = open(directory.path());
    for status in [401, 403, 407] {
        let resumed = resume(&client).await;
        assert_eq!(resumed[0].result.as_ref().unwrap().status(), status);
        assert_eq!(states(&client), [(key("a"), OpenCallState::Open)]);
    }
    resume(&client).await;
    assert_eq!(states(&client), []);
}

#[test]
fn a_journal_that_must_exist_is_not_created() {
    let directory = TempDir::new().unwrap();
    let missing = directory.path().join("journal");
    let opened = builder().existing_journal(format!("file:{}", missing.display())).build();
    assert!(
        matches!(opened, Err(Error::Journal(JournalError::Missing { directory, .. })) if directory == missing)
    );
    assert!(!missing.exists());

    drop(open(&missing));
    builder().existing_journal(format!("file:{}", missing.display())).build().unwrap();
}

#[tokio::test]
async fn c_04_a_refusal_ends_no_call_that_was_begun_before() {
    let cases = [
        (problem(400, "principal-missing", &[]), Some(OpenCallState::Open)),
        (problem(401, "signature-invalid", &[]), Some(OpenCallState::Open)),
        (answer(302, &[("location", "http://maintenance.example/")], ""), Some(OpenCallState::Open)),
        (problem(400, "key-expired", &[]), Some(OpenCallState::Uncertain)),
        (problem(422, "key-reused", &[]), Some(OpenCallState::Uncertain)),
        (problem(409, "result-unavailable", &[]), None),
        (answer(401, &[("x-idempotent-replayed", "true")], ""), None),
        (status(404), None),
    ];
    for (step, state) in cases {
        let directory = TempDir::new().unwrap();
        let shown = format!("{step:?}");
        let server = Server::with(lost().into_iter().chain([step])).await;
        lost_call(directory.path(), &server, "a").await;
        let client = open(directory.path());
        resume(&client).await;
        let expected: Vec<_> = state.map(|state| (key("a"), state)).into_iter().collect();
        assert_eq!(states(&client), expected, "{shown}");
    }
}

#[tokio::test]
async fn c_04_a_repeated_key_that_is_denied_has_an_unknown_outcome() {
    let directory = TempDir::new().unwrap();
    let server = Server::with(lost().into_iter().chain([status(403)])).await;
    lost_call(directory.path(), &server, "a").await;
    let client = open(directory.path());
    let error = client.post(server.url("/orders")).key(key("a")).json("a").send().await.unwrap_err();
    assert!(matches!(error, Error::Uncertain { cause: UncertainCause::Transport, .. }), "{error}");
    assert_eq!(states(&client), [(key("a"), OpenCallState::Open)]);
}

#[tokio::test]
async fn c_01_a_resumed_call_is_open_until_its_answer_was_dealt_with() {
    let directory = TempDir::new().unwrap();
    let server = Server::with(lost().into_iter().chain([status(201), status(201), status(201)])).await;
    lost_call(directory.path(), &server, "a").await;
    let client = open(directory.path());

    let failed = client.resume(async |resumed| {
        assert_eq!((resumed.result.unwrap().status().as_u16(), resumed.next_state), (201, None));
        assert_eq!(states(&client), [(key("a"), OpenCallState::Running)]);
        // What a process that ends now leaves behind.
        let copy = TempDir::new().unwrap();
        fs::copy(directory.path().join("calls.log"), copy.path().join("calls.log")).unwrap();
        assert_eq!(states(&open(copy.path())), [(key("a"), OpenCallState::Open)]);
        Err("the answer was not stored")
    });
    assert_eq!(failed.await, Err("the answer was not stored"));
    assert_eq!(states(&client), [(key("a"), OpenCallState::Open)]);

    // A handler that is dropped has dealt with nothing.
    let held = tokio::time::timeout(
        Duration::from_millis(300),
        client.resume(async |_| std::future::pending::<Result<(), Infallible>>().await),
    );
    held.await.unwrap_err();
    assert_eq!(states(&client), [(key("a"), OpenCallState::Open)]);

    assert_eq!(resume(&client).await.len(), 1);
    assert_eq!((states(&client), server.count()), (vec![], 6));
    assert!(server.seen()[4..].iter().all(|request| *request == server.seen()[3]));
}

#[tokio::test]
async fn c_04_a_call_that_the_resuming_client_cannot_send_stays_open() {
    let directory = TempDir::new().unwrap();
    let server = Server::with(lost()).await;
    lost_call(directory.path(), &server, "a").await;
    let http = reqwest::Client::builder().no_proxy().https_only(true).build().unwrap();
    let client = builder().http(http).journal(format!("file:{}", directory.path().display()));
    let client = client.build().unwrap();
    let resumed = resume(&client).await;
    assert!(matches!(resumed[0].result, Err(Error::Request(_))), "{:?}", resumed[0].result);
    assert_eq!(resumed[0].next_state, Some(OpenCallState::Open));
    assert_eq!(states(&client), [(key("a"), OpenCallState::Open)]);
}

#[tokio::test]
async fn one_call_is_resumed_alone() {
    let directory = TempDir::new().unwrap();
    let server = Server::with(lost().into_iter().chain(lost()).chain([status(201)])).await;
    lost_call(directory.path(), &server, "a").await;
    lost_call(directory.path(), &server, "b").await;
    let client = open(directory.path());
    let calls = client.open_calls();
    let mut ends = Vec::new();
    for _ in 0..2 {
        let handle = |resumed: Resumed| {
            ends.push(resumed.call.key);
            ready(Ok::<_, Infallible>(()))
        };
        let Ok(()) = client.resume_call(&calls[1], handle).await;
    }
    assert_eq!(ends, [key("b")]);
    assert_eq!(states(&client), [(key("a"), OpenCallState::Open)]);
}
