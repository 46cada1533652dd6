//! The proxy of the sidecar: `hapax-proxy` with the sidecar's options, problem documents and errors.
//!
//! | module | contents |
//! |---|---|
//! | `options` | the options in the file |
//! | `upstream_service` | the service inside the layer: forwards requests, and maps errors to outcomes for the layer |
//! | `refusals` | responses to requests that the layer never sees |

mod options;
mod refusals;
mod upstream_service;

use std::net::SocketAddr;

pub(crate) use hapax_proxy::{Listener, WorkerThreads};
use hapax_proxy::{ReservedFields, SetupError};

pub(crate) use self::options::{Tls, Transport, UpstreamOptions};
use self::refusals::ProblemResponses;
pub(crate) use self::upstream_service::UpstreamService;
use crate::failure::{Code, Failure};

/// Fields of requests by which a client could pose as the layer or as the sidecar.
const RESERVED: ReservedFields = ReservedFields {
    removed: &[
        "idempotency-outcome",
        "idempotency-recorded",
        "idempotency-protected",
        "idempotent-replayed",
        "x-idempotent-replayed",
    ],
    set_by_service: &["idempotency-operation", "idempotency-attempt", "x-original-method", "x-original-uri"],
};

/// Binds the listener of the sidecar.
pub(crate) async fn bind(
    address: SocketAddr,
    transport: &Transport,
    tls: Option<&Tls>,
) -> Result<Listener, Failure> {
    let tls = tls.map(Tls::files);
    let listener =
        Listener::bind(address, &transport.listener_options(), tls.as_ref()).await.map_err(setup_failure)?;
    Ok(configured(listener))
}

fn configured(listener: Listener) -> Listener {
    listener.reserved_fields(RESERVED).refusal_responses(ProblemResponses)
}

/// Why the proxy cannot be set up.
pub(crate) fn setup_failure(error: SetupError) -> Failure {
    let (code, hint) = match &error {
        SetupError::Listen { .. } => {
            (Code::ListenFailed, Some("choose an address of this machine that is not in use"))
        }
        SetupError::TlsFile { .. } => {
            (Code::InputInvalid, Some("give a certificate with its chain, and its private key, both in PEM"))
        }
        SetupError::NoUpstream => (Code::InputInvalid, Some("name one, such as http://127.0.0.1:3000")),
        SetupError::Upstream { .. } => {
            (Code::InputInvalid, Some("write it as http://HOST:PORT or https://HOST:PORT, without a path"))
        }
        _ => (Code::Failed, None),
    };
    let mut failure = Failure::new(code, error.to_string());
    if let Some(hint) = hint {
        failure = failure.hint(hint);
    }
    // The error's own text is the message already.
    let source = match error {
        SetupError::Listen { source, .. } => Some(source.into()),
        SetupError::TlsFile { source, .. } | SetupError::Upstream { source, .. } => source,
        SetupError::Tls(source) => Some(source),
        _ => None,
    };
    match source {
        Some(source) => failure.because(source),
        None => failure,
    }
}

#[cfg(test)]
mod tests;
