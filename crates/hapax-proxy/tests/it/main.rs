//! The proxy over real sockets: a client that writes arbitrary bytes, and an origin that logs the bytes it received.

#![allow(clippy::unwrap_used, reason = "a panic is the report")]

mod addresses;
mod downgrade;
mod encrypted;
mod http2;
mod pool;
mod refusals;
mod rig;
mod slow;
mod smuggling;
mod streams;
mod tls;

use bytes::Bytes;
use hapax_proxy::{ClientBody, Forward, ForwardBody, ForwardError};
use http::{Request, Response};

use self::rig::{Rig, Setup};

impl Rig {
    /// A proxy that only forwards, to these origins. An error is responded with its status and text.
    pub(crate) async fn start(origins: &[String], setup: Setup) -> Self {
        let origins: Vec<http::Uri> = origins.iter().map(|origin| origin.parse().unwrap()).collect();
        let forward = Forward::new(&origins, &setup.upstream).unwrap();
        let service = tower::service_fn(move |mut request: Request<ClientBody>| {
            let forward = forward.clone();
            request.body_mut().begin_forwarding();
            async move {
                let response = forward.send(request, |_| {}).await;
                Ok(response.unwrap_or_else(error_response))
            }
        });
        Self::serve(service, setup).await
    }
}

fn error_response(error: ForwardError) -> Response<ForwardBody> {
    let mut response = Response::new(ForwardBody::from(Bytes::from(error.to_string())));
    *response.status_mut() = error.status();
    response
}
