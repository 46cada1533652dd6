//! A sidecar in front of a service that has the layer too, both on one store.

use std::sync::Arc;

use hapax::http::{HttpPolicy, IdempotencyLayer};
use hapax::{Hapax, MemoryStore};
use hapax_core::Store;
use tower_layer::Layer;

use super::rig::{Origin, Rig, Setup};
use super::upstream;

const KEYED: &str = "POST /orders HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";

/// The layer on this store with this policy, in front of this address.
async fn layered(store: &Arc<dyn Store>, policy: HttpPolicy, url: String) -> Rig {
    let forward = upstream(&[url], &Setup::default());
    let hapax = Hapax::builder(store.clone()).sweep(None).build();
    let service = IdempotencyLayer::new(&hapax).policy(policy).layer(forward);
    Rig::serve(service, Setup::default()).await
}

/// The responses to a request and its retry with this policy of the sidecar, and how often the service ran.
async fn sent_twice(sidecar: HttpPolicy) -> (String, String, usize) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let origin = Origin::ok().await;
    let service = layered(&store, HttpPolicy::default(), origin.url()).await;
    let sidecar = layered(&store, sidecar, format!("http://{}", service.address)).await;
    let (first, second) = (sidecar.exchange(KEYED).await, sidecar.exchange(KEYED).await);
    (first, second, origin.log.requests())
}

#[tokio::test]
async fn in_one_namespace_the_service_refuses_the_sidecar_s_own_claim() {
    let (first, second, runs) = sent_twice(HttpPolicy::default()).await;
    for answer in [first, second] {
        assert!(answer.starts_with("HTTP/1.1 409 "), "{answer}");
        assert!(answer.contains("/errors/in-progress\""), "{answer}");
    }
    assert_eq!(runs, 0, "the operation never runs");
}

#[tokio::test]
async fn in_separate_namespaces_both_claim() {
    let (first, second, runs) = sent_twice(HttpPolicy::default().namespace("sidecar")).await;
    assert!(first.starts_with("HTTP/1.1 200 ") && !first.contains("replayed"), "{first}");
    assert!(
        second.starts_with("HTTP/1.1 200 ") && second.contains("x-idempotent-replayed: true"),
        "{second}"
    );
    assert_eq!(runs, 1);
}
