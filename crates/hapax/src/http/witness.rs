//! [`Witness`]: what became of one request, for whoever stands around the layer.
//!
//! It holds what the metrics tell too, and the record's id. It never holds a key or a principal.

use std::sync::{Arc, OnceLock};

use hapax_core::RecordId;

use crate::observe::Outcome;

/// Sees what becomes of one request. Whoever wants to know, such as a service that writes traces, puts a clone into the
/// request's extensions and asks when the answer is there.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use hapax::http::{IdempotencyLayer, Witness};
/// use hapax::{Hapax, MemoryStore};
/// use http::{Request, Response};
/// use http_body_util::Full;
/// use tower::{Layer, Service, ServiceExt, service_fn};
///
/// let inner = service_fn(async |_| Ok::<_, std::convert::Infallible>(Response::new(Full::<bytes::Bytes>::from("paid"))));
/// let mut service = IdempotencyLayer::new(Hapax::new(MemoryStore::new())).layer(inner);
///
/// let witness = Witness::default();
/// let request = Request::post("/payments").header("Idempotency-Key", "order-123-payment").extension(witness.clone());
/// let request = request.body(Full::<bytes::Bytes>::from("{}")).unwrap();
/// service.ready().await.unwrap().call(request).await.unwrap();
/// assert_eq!(witness.outcome(), Some("ran"));
/// # });
/// ```
#[derive(Clone, Debug, Default)]
pub struct Witness {
    seen: Arc<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    record: OnceLock<RecordId>,
    ended: OnceLock<(Arc<str>, Outcome)>,
}

impl Witness {
    /// The route that the request was for, as metrics name it. None where the layer left the request alone.
    pub fn route(&self) -> Option<&str> {
        self.seen.ended.get().map(|(route, _)| &**route)
    }

    /// What became of it, in the word that [`REQUESTS`](crate::observe::REQUESTS) counts it under. None where the layer
    /// left the request alone, and as long as nothing has.
    pub fn outcome(&self) -> Option<&'static str> {
        self.seen.ended.get().map(|(_, outcome)| outcome.name())
    }

    /// The record it is about, where it came as far as a key.
    pub fn record(&self) -> Option<RecordId> {
        self.seen.record.get().copied()
    }

    pub(super) fn is_about(&self, record: RecordId) {
        let _known = self.seen.record.set(record);
    }

    pub(super) fn ended(&self, route: &Arc<str>, outcome: Outcome) {
        let _known = self.seen.ended.set((route.clone(), outcome));
    }
}
