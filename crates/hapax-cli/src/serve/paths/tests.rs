//! Which paths are refused, and which are forwarded unchanged.

use std::convert::Infallible;
use std::future::poll_fn;

use futures_util::FutureExt as _;
use hapax::http::{HttpPolicy, KeyMode};
use hapax::{Hapax, MemoryStore};
use http::{Method, StatusCode};

use super::*;

fn layer() -> IdempotencyLayer {
    let renamed = HttpPolicy::default()
        .key_from(["header:x-request-key", "header:x-alias"].map(|place| place.parse().unwrap()));
    let required = HttpPolicy::default().key(KeyMode::Required);
    IdempotencyLayer::new(Hapax::new(MemoryStore::new()))
        .route("/v1/payments/**", required.clone())
        .route("/exact", required)
        .route("/static/**", HttpPolicy::off())
        .route("/renamed/**", renamed)
        .route("/deletes/**", HttpPolicy::default().methods([Method::DELETE]))
}

/// A service that responds with 200 to all requests.
#[derive(Clone)]
struct OkService;

impl Service<Request<()>> for OkService {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        ready(Ok(Response::new(Full::default())))
    }
}

fn is_refused(method: &str, path: &str, header: Option<&str>) -> bool {
    let mut service = AmbiguousPathGuard::new(OkService, layer());
    let mut request = Request::builder().method(method).uri(path);
    if let Some(header) = header {
        request = request.header(header, "k");
    }
    poll_fn(|cx| service.poll_ready(cx)).now_or_never().unwrap().unwrap();
    let answer = service.call(request.body(()).unwrap()).now_or_never().unwrap().unwrap();
    match answer.status() {
        StatusCode::OK => false,
        status => {
            assert_eq!(status, StatusCode::BAD_REQUEST, "{method} {path}");
            true
        }
    }
}

const KEY: Option<&str> = Some("idempotency-key");

/// Spellings of `/v1/payments` and of `/v1/payments/7` that only some servers normalise.
const PAYMENTS: [&str; 19] = [
    "/v1//payments",
    "//v1/payments",
    "/v1/payments//",
    "/v1/./payments",
    "/v1/payments/.",
    "/v1/x/../payments",
    "/../v1/payments",
    "/v1/x/%2e%2e/payments",
    "/v1/x/.%2E/payments",
    "/v1/x/..;a=b/payments",
    "/v1/payments;x=1",
    "/v1;x/payments/7",
    "/v1%2fpayments",
    "/v1%2Fp%61yments",
    "/v1\\payments",
    "/v1%5cpayments",
    "/v1/x\\..\\payments",
    "/v1/p%61yments/%",
    "/v1/%70ayments/%zz",
];

#[test]
fn no_spelling_bypasses_a_route_that_requires_a_key() {
    for path in PAYMENTS {
        for key in [None, KEY] {
            assert!(is_refused("POST", path, key), "{path} {key:?}");
        }
        assert!(!is_refused("GET", path, KEY), "{path}: nothing is protected");
    }
    for path in ["/exact//", "/exact/.", "/exact;", "/static/../exact", "/./exact"] {
        assert!(is_refused("POST", path, None), "{path}");
    }
}

#[test]
fn ambiguous_paths_with_a_key_are_refused() {
    for (method, path, header) in [
        ("POST", "/orders//7", KEY),
        ("PATCH", "/orders/../x", KEY),
        ("PUT", "/a;b", KEY),
        ("POST", "/100%", KEY),
        ("POST", "/renamed//x", Some("x-request-key")),
        ("POST", "/a/../renamed/x", Some("x-alias")),
        ("DELETE", "/deletes//x", KEY),
        ("POST", "/x/../static/x", KEY),
    ] {
        assert!(is_refused(method, path, header), "{method} {path}");
    }
}

#[test]
fn unambiguous_and_unprotected_requests_pass() {
    for (method, path, header) in [
        // AmbiguousPathGuard.
        ("POST", "/v1/payments", None),
        ("POST", "/v1/payments/", KEY),
        ("POST", "/v1/payments/a%20b/%C3%A9/..x/.well-known/x..", KEY),
        ("POST", "/%7Ejoe/p%61yments", KEY),
        ("POST", "/", KEY),
        // No key is required, and there is none.
        ("POST", "/orders//7", None),
        ("POST", "/orders/../x;y", None),
        ("POST", "/renamed//x", KEY),
        // Nothing is covered.
        ("GET", "/orders//7", KEY),
        ("DELETE", "/orders//7", KEY),
        ("POST", "/static//x", KEY),
        ("POST", "/x/../static/x", None),
    ] {
        assert!(!is_refused(method, path, header), "{method} {path}");
    }
}

/// The head of a request does not show keys in the body, or signatures.
#[test]
fn ambiguous_paths_of_routes_with_keys_in_the_body_are_refused() {
    let pointed = HttpPolicy::default().key_from(["json:/id".parse().unwrap()]);
    let layer = IdempotencyLayer::new(Hapax::new(MemoryStore::new()));
    let service = AmbiguousPathGuard::new(OkService, layer.route("/pointed/**", pointed));
    let refused = |path: &str| service.is_refused(&Request::post(path).body(()).unwrap());
    assert!(refused("/pointed//x") && refused("/x/../pointed"));
    assert!(!refused("/pointed/x") && !refused("/x//y"));
}
