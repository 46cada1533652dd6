//! A request to the admin API, with the name of the user, limited in time and size.

use std::time::Duration;

use bytes::Bytes;
use hapax_admin::{OPERATOR_HEADER, Token};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::uri::Scheme;
use http::{HeaderValue, Method, Request, Response, Uri};
use http_body_util::Full;

use crate::failure::{Code, Failure};
use crate::http_client::{HttpClient, RequestError, RequestLimits};

/// Longer than the request timeout of the listener.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The largest response: a page of records, or the largest payload of a store in hexadecimal digits.
const RESPONSE_BYTES_MAX: usize = 256 * 1024 * 1024;

const LIMITS: RequestLimits = RequestLimits { timeout: TIMEOUT, body_bytes_max: RESPONSE_BYTES_MAX };

pub(super) async fn send(
    http: &HttpClient,
    base: &Uri,
    token: &Token,
    method: Method,
    path: &str,
    body: Option<Vec<u8>>,
) -> Result<Response<Bytes>, Failure> {
    let request = request(base, token, method, path, body).map_err(|error| {
        Failure::new(Code::InputInvalid, "the request to the sidecar cannot be sent").because(error)
    })?;
    http.send(request, LIMITS).await.map_err(|error| unreachable(base, error))
}

fn request(
    base: &Uri,
    token: &Token,
    method: Method,
    path: &str,
    body: Option<Vec<u8>>,
) -> Result<Request<Full<Bytes>>, http::Error> {
    let mut bearer = HeaderValue::try_from(format!("Bearer {}", token.reveal()))?;
    bearer.set_sensitive(true);
    let mut parts = base.clone().into_parts();
    parts.path_and_query = Some(path.parse()?);
    let mut request =
        Request::builder().method(method).uri(Uri::from_parts(parts)?).header(AUTHORIZATION, bearer);
    if let Some(name) = operator() {
        request = request.header(OPERATOR_HEADER, name);
    }
    if body.is_some() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    request.body(Full::from(body.unwrap_or_default()))
}

/// The user who runs the command, for the audit log.
fn operator() -> Option<HeaderValue> {
    let name = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).ok()?;
    HeaderValue::try_from(name).ok()
}

fn unreachable(base: &Uri, error: RequestError) -> Failure {
    let authority = base.authority().map_or("", http::uri::Authority::as_str);
    let failure =
        Failure::new(Code::AdminUnavailable, format!("no sidecar responds at {authority}")).because(error);
    failure.hint(if base.scheme() == Some(&Scheme::HTTPS) {
        "check the URL, that its certificate is trusted here (SSL_CERT_FILE may name another authority) and that \
         `hapax serve` runs behind it; after a change, check the record before repeating it"
    } else {
        "check the URL and that `hapax serve` runs there; after a change, check the record before repeating it"
    })
}
