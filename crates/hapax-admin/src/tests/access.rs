//! Tests of authentication.

use serde_json::json;

use super::*;
use crate::failure::Code;

/// Requests to all paths of the API.
const GUARDED: [(&str, &str); 9] = [
    ("GET", "/api/v1/records"),
    ("POST", "/api/v1/records/search"),
    ("GET", "/api/v1/records/00"),
    ("POST", "/api/v1/records/00/settle"),
    ("POST", "/api/v1/records/00/release"),
    ("POST", "/api/v1/records/00/delete"),
    ("GET", "/api/v1/stats"),
    ("GET", "/api/v1/config"),
    ("GET", "/api/v1/audit"),
];

async fn cookie(listener: &TestListener) -> String {
    let set = listener.shared.cookies.issue("Ada");
    set.to_str().unwrap().split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn the_api_requires_the_token() {
    let listener = TestListener::start().await;
    for (method, path) in GUARDED {
        let nothing = listener.ask(method, path).send().await.refused(401, "token-invalid");
        assert!(nothing.header("www-authenticate").starts_with("Bearer"), "{nothing:?}");
        for wrong in [
            "Bearer ",
            "Bearer wrong",
            "Basic x",
            &format!("Bearer {TOKEN}x"),
            &format!("Bearer {}", &TOKEN[1..]),
        ] {
            listener
                .ask(method, path)
                .with("authorization", wrong)
                .send()
                .await
                .refused(401, "token-invalid");
        }
        listener
            .ask(method, path)
            .with("cookie", "hapax_console=x")
            .send()
            .await
            .refused(401, "token-invalid");
    }
    listener.stop().await;
}

#[tokio::test]
async fn probes_and_metrics_need_no_token() {
    let listener = TestListener::start().await;
    for path in ["/healthz", "/readyz", "/metrics", "/openapi.json"] {
        assert_eq!(listener.ask("GET", path).send().await.status, 200, "{path}");
    }
    listener.stop().await;
}

#[tokio::test]
async fn an_unknown_host_name_is_refused_except_for_probes() {
    let options = AdminOptions { hosts: vec!["admin.example".to_owned()], ..Setup::default().options };
    let listener = TestListener::with(Setup { options, ..Setup::default() }).await;
    for path in ["/api/v1/stats", "/metrics", "/openapi.json", "/", "/login", "/nothing"] {
        listener.api("GET", path).with("host", "evil.example").send().await.refused(421, "host-unknown");
    }
    for host in ["localhost", "127.0.0.1:1", "[::1]:8081", "admin.example:80"] {
        listener.api("GET", "/api/v1/stats").with("host", host).send().await.ok();
    }
    assert_eq!(listener.ask("GET", "/healthz").with("host", "pod.internal").send().await.status, 200);
    listener.stop().await;
}

#[tokio::test]
async fn a_cookie_authenticates_changes_from_the_console_only() {
    let listener = TestListener::start().await;
    let cookie = cookie(&listener).await;
    let ask = || listener.ask("POST", "/api/v1/records/search").with("cookie", &cookie).json(&json!({}));
    for (name, value) in [
        ("origin", "http://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("x-nothing", "at all"),
    ] {
        ask().with(name, value).send().await.refused(403, "request-forged");
    }
    let own = listener.url.clone();
    ask().with("origin", &own).send().await.ok();
    ask().with("sec-fetch-site", "same-origin").send().await.ok();
    listener.ask("GET", "/api/v1/stats").with("cookie", &cookie).send().await.ok();
    listener.stop().await;
}

#[tokio::test]
async fn an_exposed_listener_requires_a_configured_token() {
    let exposed = AdminListen::At(([0, 0, 0, 0], 0).into());
    let without = AdminOptions { listen: exposed, ..AdminOptions::default() };
    assert_eq!(AdminListener::bind(&without, None).await.unwrap_err().code(), Code::AdminExposed);
    let with = AdminOptions { token: Some(Token::new(TOKEN).unwrap()), ..without };
    let listener = AdminListener::bind(&with, None).await.unwrap().unwrap();
    assert_eq!(listener.generated_token(), None, "a configured token is not shown");
}

#[tokio::test]
async fn without_a_configured_token_one_is_generated() {
    let options =
        AdminOptions { listen: AdminListen::At(([127, 0, 0, 1], 0).into()), ..AdminOptions::default() };
    let (one, two) = (
        AdminListener::bind(&options, None).await.unwrap().unwrap(),
        AdminListener::bind(&options, None).await.unwrap().unwrap(),
    );
    assert_eq!(one.generated_token().unwrap().len(), 22);
    assert_ne!(one.generated_token(), two.generated_token());
    assert!(!format!("{one:?}").contains(one.generated_token().unwrap()));
}

#[tokio::test]
async fn a_listener_can_be_off_and_an_address_in_use_is_an_error() {
    let off = AdminOptions { listen: AdminListen::Off, ..AdminOptions::default() };
    assert!(AdminListener::bind(&off, None).await.unwrap().is_none());
    let listener = TestListener::start().await;
    let taken = AdminOptions {
        listen: listener.url.trim_start_matches("http://").parse().unwrap(),
        ..AdminOptions::default()
    };
    assert_eq!(AdminListener::bind(&taken, None).await.unwrap_err().code(), Code::ListenFailed);
    listener.stop().await;
}

#[test]
fn the_listen_address_is_an_address_or_off() {
    for (text, expected) in [
        ("off", Some(AdminListen::Off)),
        ("127.0.0.1:8081", Some(AdminListen::default())),
        ("127.0.0.1", None),
        ("on", None),
        ("", None),
    ] {
        assert_eq!(text.parse().ok(), expected, "{text}");
    }
    let options: AdminOptions = toml::from_str("listen = \"off\"").unwrap();
    assert_eq!(options.listen, AdminListen::Off);
    assert!(toml::from_str::<AdminOptions>("listn = \"off\"").is_err());
    assert!(toml::from_str::<AdminOptions>("token = \"x\"").is_err(), "a token is in no file");
}

#[tokio::test]
async fn every_response_has_the_security_headers() {
    let listener = TestListener::start().await;
    for answer in [
        listener.get("/api/v1/stats").await,
        listener.ask("GET", "/login").send().await,
        listener.get("/x").await,
    ] {
        assert!(answer.header("content-security-policy").starts_with("default-src 'none'"), "{answer:?}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("x-frame-options"), "DENY");
        assert_eq!(answer.header("cache-control"), "no-store");
    }
    listener.stop().await;
}

#[tokio::test]
async fn the_local_token_is_valid_for_its_listener_only() {
    let (listener, other) = (TestListener::start().await, TestListener::start().await);
    let ask = async |token: &Token| {
        listener
            .ask("GET", "/api/v1/audit")
            .with("authorization", &format!("Bearer {}", token.reveal()))
            .send()
            .await
    };
    ask(&listener.shared.local_token).await.ok();
    ask(&other.shared.local_token).await.refused(401, "token-invalid");
    listener.stop().await;
    other.stop().await;
}
