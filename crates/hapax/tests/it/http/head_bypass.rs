//! A client's request head never bypasses a check of a route.

use axum::Router;
use axum::routing::post;
use hapax::http::{HttpPolicy, IdempotencyLayer, KeyMode, Webhook};
use http::Method;

use super::service::{Service, Setup};
use super::wire::Ask;

/// Headers that make other requests pass unchanged.
const EXCUSES: [&[(&str, &str)]; 2] =
    [&[("Connection", "upgrade"), ("Upgrade", "websocket")], &[("Content-Type", "application/grpc")]];

fn excused(ask: Ask, excuse: &[(&str, &str)]) -> Ask {
    excuse.iter().fold(ask, |ask, (name, value)| ask.header(name, value))
}

#[tokio::test]
async fn p_03_no_header_waives_the_signature_of_a_webhook() {
    let webhook = Webhook::github(["secret"]).unwrap();
    let service = Service::new(HttpPolicy::default().webhook(webhook)).await;
    for excuse in EXCUSES {
        let forged = excused(Ask::post("/orders").header("X-GitHub-Delivery", "d-1").body("{}"), excuse);
        service.ask(&forged).await.assert_problem(401, "signature-invalid");
    }
    assert_eq!(service.stage.runs(), 0);
}

#[tokio::test]
async fn m_01_a_content_type_does_not_bypass_a_named_route() {
    let service = Service::start(Setup {
        layer: |layer: IdempotencyLayer| layer.route("/orders", HttpPolicy::default().key(KeyMode::Required)),
        ..Setup::default()
    })
    .await;
    let ask = Ask::post("/orders").header("Content-Type", "application/grpc");
    service.ask(&ask).await.assert_problem(400, "key-missing");
    service.ask(&ask.clone().key("k")).await.assert_first(201, "order-1");
    service.ask(&ask.clone().key("k")).await.assert_replay(201, "order-1");
}

#[tokio::test]
async fn p_02_a_call_without_a_named_route_passes_unchanged() {
    let service = Service::new(HttpPolicy::default()).await;
    let ask = Ask::post("/orders").header("Content-Type", "application/grpc").key("k");
    service.ask(&ask).await.assert_first(201, "order-1");
    service.ask(&ask).await.assert_first(201, "order-2");
}

/// The override is for the layer that has claimed the call: here a gateway in another process.
#[tokio::test]
async fn p_02_a_call_without_a_named_route_keeps_the_override() {
    let service = Service::start(Setup {
        routes: || Router::new().route("/said", post(|| async { [("Idempotency-Outcome", "release")] })),
        ..Setup::default()
    })
    .await;
    let ask = Ask::post("/said").header("Content-Type", "application/grpc");
    for ask in [ask.clone().key("k"), ask] {
        assert_eq!(service.ask(&ask).await.header("Idempotency-Outcome"), Some("release"), "{ask:?}");
    }
    assert_eq!(service.ask(&Ask::post("/said")).await.header("Idempotency-Outcome"), None);
}

#[tokio::test]
async fn p_02_a_content_type_does_not_bypass_a_required_key() {
    let service = Service::new(HttpPolicy::default().key(KeyMode::Required)).await;
    let ask = Ask::post("/orders").header("Content-Type", "application/grpc");
    service.ask(&ask).await.assert_problem(400, "key-missing");
    service.ask(&ask.clone().key("k")).await.assert_first(201, "order-1");
    service.ask(&ask.clone().key("k")).await.assert_replay(201, "order-1");
}

#[tokio::test]
async fn m_05_a_route_that_is_off_is_off_for_every_method() {
    let service = Service::start(Setup {
        policy: HttpPolicy::default().methods([Method::POST, Method::DELETE]),
        layer: |layer: IdempotencyLayer| layer.route("/orders", HttpPolicy::off()),
        ..Setup::default()
    })
    .await;
    for method in ["POST", "DELETE"] {
        let ask = Ask::new(method, "/orders").key("k");
        for _ in 0..2 {
            let answer = service.ask(&ask).await;
            assert_eq!((answer.status, answer.is_replayed()), (201, false), "{method}");
        }
    }
}

#[tokio::test]
async fn m_01_only_the_methods_listed_for_a_path_are_covered() {
    let service = Service::start(Setup {
        policy: HttpPolicy::default().key(KeyMode::Required),
        layer: |layer: IdempotencyLayer| {
            layer
                .route("/orders", HttpPolicy::default().methods([Method::POST]))
                .route("/orders", HttpPolicy::default().methods([Method::DELETE]))
        },
        routes: || Router::new().fallback(super::service::order),
        ..Setup::default()
    })
    .await;
    for (method, path, is_covered) in [
        ("POST", "/orders", true),
        ("DELETE", "/orders", true),
        ("PUT", "/orders", false),
        ("PUT", "/orders/7", true),
        ("DELETE", "/orders/7", false),
    ] {
        let ask = Ask::new(method, path).key("k");
        let first = service.ask(&ask).await;
        assert_eq!((first.status, first.is_replayed()), (201, false), "{method} {path}");
        assert_eq!(service.ask(&ask).await.is_replayed(), is_covered, "{method} {path}");
    }
    // Nor is a key required.
    assert_eq!(service.ask(&Ask::new("PUT", "/orders")).await.status, 201);
    service.ask(&Ask::new("PUT", "/orders/7")).await.assert_problem(400, "key-missing");
}

#[tokio::test]
async fn m_01_a_pattern_matches_its_paths_in_any_encoding() {
    let service = Service::start(Setup {
        layer: |layer: IdempotencyLayer| {
            let required = HttpPolicy::default().key(KeyMode::Required);
            layer.route("/caf%c3%a9/{id}", required.clone()).route("/%7Ejoe", required)
        },
        routes: || axum::Router::new().fallback(super::service::order),
        ..Setup::default()
    })
    .await;
    for path in ["/caf%c3%a9/1", "/caf%C3%A9/1", "/c%61f%C3%a9/1", "/%7Ejoe", "/~joe"] {
        service.ask(&Ask::post(path)).await.assert_problem(400, "key-missing");
    }
}
