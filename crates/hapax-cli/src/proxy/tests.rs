//! The proxy with the layer over real sockets: a client that writes arbitrary bytes, and an origin that logs the bytes it
//! received.

mod connection_slots;
mod encrypted;
mod failures;
mod hop_by_hop;
mod http2;
mod one_store;
mod resets;
mod response_budget;
#[path = "../../../hapax-proxy/tests/it/rig.rs"]
mod rig;
mod slow;
mod smuggling;
mod streams;
#[path = "../../../hapax-proxy/tests/it/tls.rs"]
mod tls;

use hapax::http::IdempotencyLayer;
use hapax::{Hapax, MemoryStore};
use hapax_proxy::Forward;
use http::Uri;
use tower_layer::Layer;

use self::rig::{Rig, Setup};
use super::{UpstreamService, configured};

impl Rig {
    /// A proxy with the layer in front of these origins.
    pub(crate) async fn start(origins: &[String], mut setup: Setup) -> Self {
        let hapax = Hapax::new(MemoryStore::new());
        let service = IdempotencyLayer::new(&hapax).layer(upstream(origins, &setup));
        setup.configure = configured;
        Self::serve(service, setup).await
    }
}

/// The service inside the layer.
fn upstream(origins: &[String], setup: &Setup) -> UpstreamService {
    let uris: Vec<Uri> = origins.iter().map(|origin| origin.parse().unwrap()).collect();
    UpstreamService::over(Forward::new(&uris, &setup.upstream).unwrap())
}
