//! [`Observer`]: the outcome of one request, for services around the layer.
//!
//! It holds the labels of the metrics and the record's id, and never a key or a principal.

use std::sync::{Arc, OnceLock};

use hapax_core::RecordId;

use crate::observe::OutcomeLabel;

/// Receives the outcome of one request. A service around the layer, such as one that writes traces, puts a clone into
/// the extensions of the request and reads it once it has the response.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use hapax::http::{IdempotencyLayer, Observer};
/// use hapax::{Hapax, MemoryStore};
/// use http::{Request, Response};
/// use http_body_util::Full;
/// use tower::{Layer, Service, ServiceExt, service_fn};
///
/// let inner = service_fn(async |_| Ok::<_, std::convert::Infallible>(Response::new(Full::<bytes::Bytes>::from("paid"))));
/// let mut service = IdempotencyLayer::new(Hapax::new(MemoryStore::new())).layer(inner);
///
/// let observer = Observer::default();
/// let request = Request::post("/payments").header("Idempotency-Key", "order-123-payment").extension(observer.clone());
/// let request = request.body(Full::<bytes::Bytes>::from("{}")).unwrap();
/// service.ready().await.unwrap().call(request).await.unwrap();
/// assert_eq!(observer.outcome(), Some("ran"));
/// # });
/// ```
#[derive(Clone, Debug, Default)]
pub struct Observer {
    request: Arc<ObservedRequest>,
}

#[derive(Debug, Default)]
struct ObservedRequest {
    record: OnceLock<RecordId>,
    ended: OnceLock<(Arc<str>, OutcomeLabel)>,
}

impl Observer {
    /// The route of the request, as in metrics. `None` if the request passed unchanged.
    pub fn route(&self) -> Option<&str> {
        self.request.ended.get().map(|(route, _)| &**route)
    }

    /// Its outcome, as the label that [`REQUESTS`](crate::observe::REQUESTS) counts. `None` if the request passed
    /// unchanged, and before it has an outcome.
    pub fn outcome(&self) -> Option<&'static str> {
        self.request.ended.get().map(|(_, outcome)| outcome.name())
    }

    /// The record of the request, if it has a key.
    pub fn record(&self) -> Option<RecordId> {
        self.request.record.get().copied()
    }

    pub(super) fn set_record(&self, record: RecordId) {
        let _known = self.request.record.set(record);
    }

    pub(super) fn set_outcome(&self, route: &Arc<str>, outcome: OutcomeLabel) {
        let _known = self.request.ended.set((route.clone(), outcome));
    }
}
