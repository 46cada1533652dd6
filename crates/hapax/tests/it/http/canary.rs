//! No key, body, credential or cookie in any output: logs, metrics, refusals.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::any;
use hapax::core::StoreErrorKind;
use hapax::http::{
    Anonymous, DecodeLimits, Dialect, HttpPolicy, IdempotencyLayer, KeyMode, OnStoreError, Principal, Webhook,
};
use hapax_testkit::{Fault, Op, Plan};
use http::{HeaderName, StatusCode};

use super::service::{Service, Setup, Stage, panics};
use super::wire::{Ask, WireResponse};
use crate::watched::watch;

const CANARY: &str = "canary-5b1e";

/// Fits one small body at a time, and no large one.
const BUDGET: usize = 1000;

/// A request with a canary in every place that may hold a secret.
fn ask(path: &str) -> Ask {
    Ask::post(path)
        .by(&format!("Bearer {CANARY}-token"))
        .header("Cookie", &format!("session={CANARY}-cookie"))
        .header("Content-Type", "application/json")
        .body(format!("{{\"card\":\"{CANARY}-body\"}}"))
}

fn keyed(path: &str) -> Ask {
    ask(path).key(&format!("{CANARY}-key"))
}

fn routes(layer: IdempotencyLayer) -> IdempotencyLayer {
    let policy = HttpPolicy::default;
    let route = |layer: IdempotencyLayer, path: &str, policy| layer.route(path, policy);
    let layer = route(layer, "/required", policy().key(KeyMode::Required));
    let layer = route(layer, "/small", policy().body_bytes_max(4));
    let layer = route(layer, "/limited", policy().attempts_per_key("1/1h".parse().unwrap()));
    let layer = route(layer, "/streamed", policy().outcome_bytes_max(1));
    let layer = route(layer, "/pass", policy().on_store_error(OnStoreError::Pass));
    let layer = route(layer, "/nobody", policy().principal(Principal::None).anonymous(Anonymous::Refuse));
    let layer = route(layer, "/decoded", policy().decode(DecodeLimits::default()));
    let layer = route(layer, "/oasis", HttpPolicy::of(Dialect::Oasis));
    let first_sent = HeaderName::from_static("x-first-sent");
    let layer = route(layer, "/sent", policy().first_sent(first_sent, Duration::from_secs(60)));
    let layer = route(layer, "/grpc/call", HttpPolicy::grpc().key(KeyMode::Required));
    let layer = route(layer, "/grpc/panics", HttpPolicy::grpc());
    let layer = route(layer, "/hook", policy().webhook(Webhook::github([CANARY]).unwrap()));
    route(layer, "/late", policy().deadline(Duration::from_millis(1))).body_budget(BUDGET)
}

fn handlers() -> Router<Arc<Stage>> {
    let answer = || any(|| async { format!("{CANARY}-answer") });
    let paths = ["/plain", "/required", "/small", "/limited", "/streamed", "/pass"];
    let router = paths.into_iter().fold(Router::new(), |router, path| router.route(path, answer()));
    router
        .route(
            "/grpc/call",
            any(|| async { ([("content-type", "application/grpc"), ("grpc-status", "0")], CANARY) }),
        )
        .route("/grpc/panics", any(panics))
        .route("/late", any(std::future::pending::<()>))
        .route("/cut", any(|| async { ([("content-length", "100")], CANARY) }))
        .route("/odd", any(|| async { ([("idempotency-outcome", CANARY)], StatusCode::BAD_GATEWAY) }))
}

/// Every refusal that a request can get, and the layer's other responses.
async fn every_refusal() -> Vec<WireResponse> {
    let service = Service::start(Setup { layer: routes, routes: handlers, ..Setup::default() }).await;
    let mut responses = vec![
        service.ask(&ask("/required")).await,
        service.ask(&keyed("/plain").key(CANARY)).await,
        service.ask(&ask("/plain").header("Idempotency-Key", &format!("\"{CANARY}"))).await,
        service.ask(&keyed("/small")).await,
        service.ask(&keyed("/plain").header("Early-Data", "1")).await,
        service.ask(&keyed("/plain").header("Content-Digest", &format!("sha-256=:{CANARY}:"))).await,
        service.ask(&keyed("/plain").body(CANARY.repeat(BUDGET))).await,
        service.ask(&keyed("/nobody")).await,
        service.ask(&keyed("/decoded").header("Content-Encoding", CANARY)).await,
        service.ask(&keyed("/decoded").header("Content-Encoding", "gzip")).await,
        service.ask(&Ask::new("DELETE", "/oasis").header("Repeatability-Request-ID", CANARY)).await,
        service.ask(&ask("/oasis").header("Repeatability-Request-ID", CANARY)).await,
        service.ask(&ask("/hook").header("X-Hub-Signature-256", CANARY)).await,
        service.ask(&keyed("/cut")).await,
        service.ask(&keyed("/late")).await,
        service.ask(&keyed("/late")).await,
        service.ask(&keyed("/panics")).await,
        service.ask(&keyed("/panics")).await,
        service.ask(&keyed("/odd")).await,
        service.ask(&keyed("/odd")).await,
        service.ask(&keyed("/sent").header("X-First-Sent", "Sun, 06 Nov 1994 08:49:37 GMT")).await,
        service.ask(&ask("/grpc/call")).await,
        service.ask(&keyed("/grpc/call").key(CANARY)).await,
        service.ask(&keyed("/grpc/panics")).await,
    ];
    for path in ["/plain", "/limited", "/streamed", "/grpc/call"] {
        assert_eq!(service.ask(&keyed(path)).await.status, 200);
    }
    for path in ["/plain", "/grpc/call"] {
        responses.push(service.ask(&keyed(path).body(format!("{CANARY}-other"))).await);
    }
    responses.push(service.ask(&keyed("/limited")).await);
    responses.push(service.ask(&keyed("/streamed")).await);
    assert!(service.ask(&keyed("/plain")).await.is_replayed());
    for kind in [StoreErrorKind::Unavailable, StoreErrorKind::Unknown] {
        service.faulty.set_plan(Plan::new().always(Op::Claim, Fault::ErrorBefore(kind)));
        responses.push(service.ask(&keyed("/orders")).await);
        responses.push(service.ask(&keyed("/grpc/call")).await);
        assert_eq!(service.ask(&keyed("/pass")).await.header("idempotency-protected"), Some("false"));
    }
    service.faulty.set_plan(Plan::new().always(Op::Complete, Fault::AnswerLost));
    assert_eq!(service.ask(&keyed("/orders")).await.header("idempotency-recorded"), Some("false"));
    let _ = service.hapax.drain(Duration::ZERO).await;
    responses.push(service.ask(&keyed("/orders")).await);
    responses
}

#[test]
fn s_06_no_canary_in_logs_metrics_or_refusals() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (responses, logs, snapshotter) = watch(|| runtime.block_on(every_refusal()));
    let codes: Vec<String> = responses
        .iter()
        .map(|answer| {
            if let Some((code, _)) =
                answer.header("grpc-message").and_then(|message| message.split_once(": "))
            {
                return format!("grpc:{code}");
            }
            let document: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            document["type"].as_str().unwrap_or("none").rsplit('/').next().unwrap().to_owned()
        })
        .collect();
    let expected = "key-missing key-invalid key-invalid too-large too-early digest-mismatch overloaded \
                    principal-missing coding-unsupported coding-unsupported not-repeatable key-invalid \
                    signature-invalid uncertain in-progress in-progress uncertain uncertain none uncertain \
                    key-expired grpc:key-missing grpc:key-invalid grpc:uncertain key-reused grpc:key-reused \
                    rate-limited result-unavailable store-unavailable grpc:store-unavailable store-unavailable \
                    grpc:store-unavailable draining";
    assert_eq!(codes.join(" "), expected);
    for answer in &responses {
        let shown = format!("{:?} {}", answer.headers, String::from_utf8_lossy(&answer.body));
        assert!(!shown.contains(CANARY), "{shown}");
    }
    for word in ["hapax.execution", "POST /plain", "panicked", "unprotected", "failed to record"] {
        assert!(logs.contains(word), "{word} is logged: {logs}");
    }
    assert!(!logs.contains(CANARY), "{logs}");
    let counted = snapshotter.snapshot().into_vec();
    assert!(counted.len() > 10, "{counted:?}");
    for (key, ..) in counted {
        assert!(!format!("{key:?}").contains(CANARY), "{key:?}");
    }
}
