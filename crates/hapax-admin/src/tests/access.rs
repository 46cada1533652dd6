//! Who gets in, and who does not.

use serde_json::json;

use super::*;
use crate::failure::Code;

/// Every path of the API, as a request that would be answered otherwise.
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

async fn cookie(show: &Showcase) -> String {
    let set = show.shared.cookies.issue("Ada");
    set.to_str().unwrap().split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn nothing_of_the_api_is_answered_without_the_token() {
    let show = Showcase::start().await;
    for (method, path) in GUARDED {
        let nothing = show.ask(method, path).send().await.refused(401, "token-invalid");
        assert!(nothing.header("www-authenticate").starts_with("Bearer"), "{nothing:?}");
        for wrong in [
            "Bearer ",
            "Bearer wrong",
            "Basic x",
            &format!("Bearer {TOKEN}x"),
            &format!("Bearer {}", &TOKEN[1..]),
        ] {
            show.ask(method, path).with("authorization", wrong).send().await.refused(401, "token-invalid");
        }
        show.ask(method, path).with("cookie", "hapax_console=x").send().await.refused(401, "token-invalid");
    }
    show.stop().await;
}

#[tokio::test]
async fn probes_and_metrics_need_no_token() {
    let show = Showcase::start().await;
    for path in ["/healthz", "/readyz", "/metrics", "/openapi.json"] {
        assert_eq!(show.ask("GET", path).send().await.status, 200, "{path}");
    }
    show.stop().await;
}

#[tokio::test]
async fn a_name_that_is_not_ours_is_refused_everywhere_but_for_probes() {
    let options = AdminOptions { hosts: vec!["admin.example".to_owned()], ..Setting::default().options };
    let show = Showcase::with(Setting { options, ..Setting::default() }).await;
    for path in ["/api/v1/stats", "/metrics", "/openapi.json", "/", "/login", "/nothing"] {
        show.api("GET", path).with("host", "evil.example").send().await.refused(421, "host-unknown");
    }
    for host in ["localhost", "127.0.0.1:1", "[::1]:8081", "admin.example:80"] {
        show.api("GET", "/api/v1/stats").with("host", host).send().await.ok();
    }
    assert_eq!(show.ask("GET", "/healthz").with("host", "pod.internal").send().await.status, 200);
    show.stop().await;
}

#[tokio::test]
async fn a_cookie_changes_something_only_from_our_own_pages() {
    let show = Showcase::start().await;
    let cookie = cookie(&show).await;
    let ask = || show.ask("POST", "/api/v1/records/search").with("cookie", &cookie).json(&json!({}));
    for (name, value) in [
        ("origin", "http://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("x-nothing", "at all"),
    ] {
        ask().with(name, value).send().await.refused(403, "request-forged");
    }
    let own = show.url.clone();
    ask().with("origin", &own).send().await.ok();
    ask().with("sec-fetch-site", "same-origin").send().await.ok();
    show.ask("GET", "/api/v1/stats").with("cookie", &cookie).send().await.ok();
    show.stop().await;
}

#[tokio::test]
async fn beyond_loopback_the_listener_needs_a_chosen_token() {
    let exposed = AdminListen::At(([0, 0, 0, 0], 0).into());
    let without = AdminOptions { listen: exposed, ..AdminOptions::default() };
    assert_eq!(AdminListener::bind(&without, None).await.unwrap_err().code(), Code::AdminExposed);
    let with = AdminOptions { token: Some(Token::new(TOKEN).unwrap()), ..without };
    let listener = AdminListener::bind(&with, None).await.unwrap().unwrap();
    assert_eq!(listener.made_token(), None, "a chosen token is not shown");
}

#[tokio::test]
async fn without_a_chosen_token_one_is_made_and_told() {
    let options =
        AdminOptions { listen: AdminListen::At(([127, 0, 0, 1], 0).into()), ..AdminOptions::default() };
    let (one, two) = (
        AdminListener::bind(&options, None).await.unwrap().unwrap(),
        AdminListener::bind(&options, None).await.unwrap().unwrap(),
    );
    assert_eq!(one.made_token().unwrap().len(), 22);
    assert_ne!(one.made_token(), two.made_token());
    assert!(!format!("{one:?}").contains(one.made_token().unwrap()));
}

#[tokio::test]
async fn a_listener_may_be_off_and_a_taken_address_is_a_failure() {
    let off = AdminOptions { listen: AdminListen::Off, ..AdminOptions::default() };
    assert!(AdminListener::bind(&off, None).await.unwrap().is_none());
    let show = Showcase::start().await;
    let taken = AdminOptions {
        listen: show.url.trim_start_matches("http://").parse().unwrap(),
        ..AdminOptions::default()
    };
    assert_eq!(AdminListener::bind(&taken, None).await.unwrap_err().code(), Code::ListenFailed);
    show.stop().await;
}

#[test]
fn where_to_listen_is_written_as_people_write_it() {
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
async fn every_answer_carries_the_headers_that_keep_browsers_in_check() {
    let show = Showcase::start().await;
    for answer in
        [show.get("/api/v1/stats").await, show.ask("GET", "/login").send().await, show.get("/x").await]
    {
        assert!(answer.header("content-security-policy").starts_with("default-src 'none'"), "{answer:?}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("x-frame-options"), "DENY");
        assert_eq!(answer.header("cache-control"), "no-store");
    }
    show.stop().await;
}

#[tokio::test]
async fn the_token_for_commands_on_this_machine_opens_this_listener_alone() {
    let (show, other) = (Showcase::start().await, Showcase::start().await);
    let ask = async |token: &Token| {
        show.ask("GET", "/api/v1/audit")
            .with("authorization", &format!("Bearer {}", token.reveal()))
            .send()
            .await
    };
    ask(&show.shared.local_token).await.ok();
    ask(&other.shared.local_token).await.refused(401, "token-invalid");
    show.stop().await;
    other.stop().await;
}
