//! Tests of the console over sockets and in a browser.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::test_listener::{self, KEY, PAYLOAD, TOKEN, TestListener, key};
use crate::tests::tools;

/// Logs in and returns the cookie.
async fn logged_in(listener: &TestListener) -> String {
    let form = format!("token={TOKEN}&name=Ada&next=/records");
    let answer = listener.ask("POST", "/login").with("sec-fetch-site", "same-origin").body(form).send().await;
    assert_eq!((answer.status.as_u16(), answer.header("location")), (303, "/records"), "{answer:?}");
    answer.header("set-cookie").split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn pages_require_a_login() {
    let listener = TestListener::start().await;
    for (method, path) in [
        ("GET", "/"),
        ("GET", "/live"),
        ("GET", "/records"),
        ("POST", "/records/search"),
        ("GET", "/records/00"),
        ("POST", "/records/00/delete"),
        ("GET", "/audit"),
        ("GET", "/config"),
        ("POST", "/logout"),
    ] {
        let answer = listener.ask(method, path).send().await;
        assert_eq!(answer.status, 303, "{method} {path}: {answer:?}");
        assert!(answer.header("location").starts_with("/login"), "{answer:?}");
    }
    for path in ["/login", "/assets/console.css", "/assets/console.js", "/assets/icon.svg"] {
        assert_eq!(listener.ask("GET", path).send().await.status, 200, "{path}");
    }
    listener.stop().await;
}

#[tokio::test]
async fn a_login_requires_the_token_and_the_login_page_and_has_an_audit_entry() {
    let listener = TestListener::start().await;
    let wrong = listener.ask("POST", "/login").with("sec-fetch-site", "same-origin");
    let wrong = wrong.body("token=wrong".to_owned()).send().await;
    assert_eq!((wrong.status.as_u16(), wrong.header("set-cookie")), (401, ""));
    let forged = listener.ask("POST", "/login").with("origin", "http://evil.example");
    let forged = forged.body(format!("token={TOKEN}")).send().await;
    assert_eq!((forged.status.as_u16(), forged.header("set-cookie")), (403, ""));
    assert_eq!(listener.get("/api/v1/audit").await.ok()["entries"], json!([]));
    let cookie = logged_in(&listener).await;
    assert_eq!(listener.ask("GET", "/").with("cookie", &cookie).send().await.status, 200);
    let entry = &listener.get("/api/v1/audit").await.ok()["entries"][0];
    assert_eq!(
        (&entry["action"], &entry["actor"], &entry["via"]),
        (&json!("login"), &json!("Ada"), &json!("console"))
    );
    listener.stop().await;
}

#[tokio::test]
async fn a_cookie_is_invalid_after_its_logout() {
    let listener = TestListener::start().await;
    let (kept, copied) = (logged_in(&listener).await, logged_in(&listener).await);
    let status =
        async |cookie: &str| listener.ask("GET", "/records").with("cookie", cookie).send().await.status;
    assert_eq!((status(&kept).await.as_u16(), status(&copied).await.as_u16()), (200, 200));
    let ask = listener.ask("POST", "/logout").with("cookie", &copied).with("sec-fetch-site", "same-origin");
    assert_eq!(ask.send().await.header("location"), "/login");
    assert_eq!(status(&copied).await, 303);
    let api = listener.ask("GET", "/api/v1/records").with("cookie", &copied).send().await;
    api.refused(401, "token-invalid");
    assert_eq!(status(&kept).await, 200, "the other login stays valid");
    listener.stop().await;
}

#[tokio::test]
async fn a_form_of_another_site_changes_nothing() {
    let listener = TestListener::start().await;
    let it = listener.fill().await;
    let cookie = logged_in(&listener).await;
    let form = format!("version={}&reason=x&sure=yes", listener.version(&it.completed).await);
    let path = format!("/records/{}/delete", it.completed);
    let ask = || listener.ask("POST", &path).with("cookie", &cookie).body(form.clone());
    assert_eq!(ask().with("origin", "http://evil.example").send().await.status, 403);
    assert_eq!(ask().send().await.status, 403);
    listener.get(&format!("/api/v1/records/{}", it.completed)).await.ok();
    let own = ask().with("sec-fetch-site", "same-origin").send().await;
    assert_eq!((own.status.as_u16(), own.header("location")), (303, "/records?done=deleted"));
    listener.get(&format!("/api/v1/records/{}", it.completed)).await.refused(404, "record-missing");
    listener.stop().await;
}

#[tokio::test]
async fn a_form_accepts_a_large_result_within_the_limit() {
    let listener = TestListener::start().await;
    let id = test_listener::uncertain(&*listener.store, "a").await;
    let cookie = logged_in(&listener).await;
    let version = listener.version(&id).await;
    let path = format!("/records/{id}/settle");
    let settle = async |payload: String| {
        let form =
            format!("version={version}&reason=x&sure=yes&class=success&format=operator&payload={payload}");
        let ask = listener.ask("POST", &path).with("cookie", &cookie).with("sec-fetch-site", "same-origin");
        ask.body(form).send().await
    };
    assert_eq!(settle("x".repeat(5 * 1024 * 1024)).await.status, 413);
    let done = settle("x".repeat(200_000)).await;
    assert_eq!(done.header("location"), format!("/records/{id}?done=settle"), "{done:?}");
    listener.stop().await;
}

#[tokio::test]
async fn a_request_is_settled_with_the_response_of_the_form() {
    let listener = TestListener::start().await;
    let id = test_listener::uncertain(&*listener.store, "orders").await;
    let cookie = logged_in(&listener).await;
    let page =
        listener.ask("GET", &format!("/records/{id}/settle")).with("cookie", &cookie).send().await.body;
    for field in ["name=\"status\"", "name=\"body\"", "name=\"content_type\"", "name=\"headers\""] {
        assert!(page.contains(field), "{field}: {page}");
    }
    assert!(!page.contains("name=\"payload\""), "{page}");
    let version = listener.version(&id).await;
    let settle = async |answer: &str| {
        let form = format!("version={version}&reason=x&sure=yes&hours=1&{answer}");
        let ask = listener.ask("POST", &format!("/records/{id}/settle")).with("cookie", &cookie);
        ask.with("sec-fetch-site", "same-origin").body(form).send().await
    };
    for wrong in ["status=99", "status=2xx", "status=204&body=x", "body=typed", "status=200&headers=no-colon"]
    {
        let refused = settle(wrong).await;
        assert_eq!(refused.status, 400, "{wrong}");
        assert!(refused.body.contains("role=\"alert\""), "{wrong}: {}", refused.body);
    }
    assert!(settle("body=typed+before").await.body.contains("typed before"), "the input is kept");
    let done = settle(
        "status=201&content_type=application%2Fjson&headers=Location%3A+%2Forders%2F7%0D%0A&body=%7B%0D%0A%7D",
    );
    let done = done.await;
    assert_eq!(done.header("location"), format!("/records/{id}?done=settle"), "{done:?}");
    let shown = listener.get(&format!("/api/v1/records/{id}?payload=true")).await.ok();
    let recorded = &shown["record"]["recorded"];
    assert_eq!((&recorded["status"], &recorded["payload"]), (&json!(201), &json!("{\n}")));
    let headers = json!({ "content-type": "application/json", "location": "/orders/7" });
    assert_eq!(recorded["headers"], headers);
    let page =
        listener.ask("GET", &format!("/records/{id}?payload=true")).with("cookie", &cookie).send().await;
    assert!(page.body.contains("location: /orders/7"), "{}", page.body);
    listener.stop().await;
}

#[tokio::test]
async fn a_search_finds_a_key_that_is_in_no_url_or_page() {
    let listener = TestListener::start().await;
    let it = listener.fill().await;
    let cookie = logged_in(&listener).await;
    let form = format!("key={}", key("failed"));
    let ask =
        listener.ask("POST", "/records/search").with("cookie", &cookie).with("sec-fetch-site", "same-origin");
    let answer = ask.body(form).send().await;
    let to = answer.header("location");
    assert!(!to.contains(KEY), "{to}");
    let page = listener.ask("GET", to).with("cookie", &cookie).send().await.body;
    assert!(page.contains(&it.failed.to_string()) && !page.contains(KEY), "{page}");
    listener.stop().await;
}

#[tokio::test]
async fn stored_text_is_escaped_in_pages() {
    let listener = TestListener::start().await;
    let name = "<script>alert(1)</script>";
    let id = test_listener::completed(&*listener.store, name).await;
    let cookie = logged_in(&listener).await;
    for path in ["/records".to_owned(), format!("/records/{id}"), format!("/records/{id}/delete")] {
        let page = listener.ask("GET", &path).with("cookie", &cookie).send().await.body;
        assert!(!page.contains(name) && page.contains("&#60;script&#62;"), "{path}: {page}");
    }
    listener.stop().await;
}

#[tokio::test]
async fn pages_show_payloads_only_on_request() {
    let listener = TestListener::start().await;
    let it = listener.fill().await;
    let cookie = logged_in(&listener).await;
    let path = format!("/records/{}", it.completed);
    let page = |path: String| {
        let ask = listener.ask("GET", &path).with("cookie", &cookie);
        async move { ask.send().await.body }
    };
    let canary = &PAYLOAD[10..29];
    assert!(!page(path.clone()).await.contains(canary));
    assert!(page(format!("{path}?payload=true")).await.contains(canary));
    listener.stop().await;
}

#[tokio::test]
async fn errors_of_the_console_are_pages() {
    let listener = TestListener::start().await;
    let answer = listener.ask("GET", "/nothing").send().await;
    assert_eq!(answer.status, 404);
    assert!(answer.header("content-type").starts_with("text/html"), "{answer:?}");
    let cookie = logged_in(&listener).await;
    let missing = format!("/records/{}", "0".repeat(64));
    let answer = listener.ask("GET", &missing).with("cookie", &cookie).send().await;
    assert_eq!(answer.status, 404);
    assert!(answer.body.contains("record-missing"), "{answer:?}");
    for path in ["/records/abc", "/audit?before=x"] {
        let answer = listener.ask("GET", path).with("cookie", &cookie).send().await;
        assert_eq!(answer.status, 400);
        assert!(answer.header("content-type").starts_with("text/html"), "{answer:?}");
    }
    listener.stop().await;
}

/// Runs the flows of `tests/browser` in Chromium. `HAPAX_SCREENSHOTS` names a folder for screenshots, `HAPAX_BROWSER_FLOW`
/// selects flows by a part of their name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_flow_works_in_a_browser() {
    let modules = tools::browser_modules();
    let listener = TestListener::start().await;
    listener.fill_for_browser().await;
    let walk = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/main.js");
    let url = listener.url.clone();
    let walked = tokio::task::spawn_blocking(move || {
        let mut node = Command::new("node");
        node.arg(walk).env("HAPAX_CONSOLE_URL", url).env("HAPAX_CONSOLE_TOKEN", TOKEN);
        node.env("HAPAX_CONSOLE_KEY", KEY).env("HAPAX_BROWSER_MODULES", modules);
        node.env("HAPAX_BROWSER", tools::CHROMIUM);
        node.args(std::env::var("HAPAX_BROWSER_FLOW").ok());
        node.output().expect("node is there: apt-get install -y nodejs npm")
    });
    let walked = walked.await.unwrap();
    let output = String::from_utf8_lossy(&walked.stdout);
    println!("{output}");
    assert!(walked.status.success(), "{output}\n{}", String::from_utf8_lossy(&walked.stderr));
    listener.stop().await;
}
