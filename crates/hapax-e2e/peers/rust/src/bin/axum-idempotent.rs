//! The service with axum-idempotent. It caches a response only in a session, so each key is given one of its own: the
//! store never searches a large session.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum_idempotent::{IdempotentLayer, IdempotentOptions};
use fred::interfaces::ClientLike;
use fred::prelude::{Builder, Client, Config};
use hapax_peers::{redis_url, serve, store};
use ruts::store::SessionStore;
use ruts::store::moka::MokaStore;
use ruts::store::redis::RedisStore;
use ruts::{CookieOptions, SessionLayer};
use tower_cookies::CookieManagerLayer;

/// Seconds for which a response is kept.
const RETENTION: i64 = 24 * 3600;
/// Enough for every key of a run: the default evicts after ten thousand.
const SESSIONS_MAX: u64 = 10_000_000;
/// A session id is 22 characters of base64url, the last of which has four bits that must be zero.
const SESSION_LENGTH: usize = 22;

fn main() {
    serve(async |orders| match store().as_str() {
        "memory" => wrap(orders, MokaStore::builder().max_capacity(SESSIONS_MAX).build()),
        "redis" => {
            let config = Config::from_url(&redis_url()).expect("the URL is one of a Redis server");
            let client: Client = Builder::from_config(config).build().expect("a client can be built");
            client.init().await.expect("the server answers");
            let store = RedisStore::new(Arc::new(client)).await.expect("the server can be used as a store");
            wrap(orders, store)
        }
        other => panic!("there is no store {other}"),
    });
}

fn wrap<S: SessionStore + Clone + 'static>(orders: Router, store: S) -> Router {
    let options = IdempotentOptions::default()
        .use_idempotency_key_header(Some("Idempotency-Key"), false)
        .expire_after(RETENTION);
    orders
        .layer(IdempotentLayer::<S>::new(options))
        .layer(SessionLayer::new(Arc::new(store)).with_cookie_options(CookieOptions::build().name("session")))
        .layer(CookieManagerLayer::new())
        .layer(from_fn(sign_in))
}

/// Adds the session cookie that a signed-in client would send.
async fn sign_in(mut request: Request, next: Next) -> Response {
    if let Some(key) = request.headers().get("Idempotency-Key") {
        let letters = key.as_bytes().iter().rev().filter(|byte| byte.is_ascii_alphanumeric());
        let mut id: Vec<u8> = letters.copied().take(SESSION_LENGTH - 1).collect();
        id.resize(SESSION_LENGTH, b'A');
        let cookie = [b"session=", &id[..]].concat();
        request.headers_mut().insert(header::COOKIE, HeaderValue::from_bytes(&cookie).expect("letters"));
    }
    next.run(request).await
}
