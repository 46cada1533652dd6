//! [`RetryMiddleware`]: the key and the retries of this crate inside of a `reqwest_middleware` client.

use http::Extensions;
use parking_lot::Mutex;
use reqwest::{Request, Response};
use reqwest_middleware::{Middleware, Next};
use tracing::Instrument;

use crate::Key;
use crate::age::{KeyAge, Moment};
use crate::error::Error;
use crate::key_field;
use crate::observe;
use crate::plan::{self, BodySource, Plan, Settings};
use crate::send::{self, Failure, Transport};

/// Gives requests a key and retries them, as [`Client`](crate::Client) does.
///
/// A request whose body is a stream has one attempt. The key of a call is in the extensions of its response. An [`Error`]
/// arrives as `reqwest_middleware::Error::Middleware`, from which it can be downcast. Middlewares after this one see every
/// attempt; none of them should retry.
///
/// The inner client follows no redirects and does not retry: its redirects would take the key and the body to other origins,
/// and one layer retries.
///
/// ```
/// use hapax_client::Client;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let http = reqwest::Client::builder()
///     .redirect(reqwest::redirect::Policy::none())
///     .retry(reqwest::retry::never())
///     .build()?;
/// let client = reqwest_middleware::ClientBuilder::new(http)
///     .with(Client::builder().build_middleware()?)
///     .build();
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct RetryMiddleware {
    settings: Settings,
}

impl RetryMiddleware {
    pub(crate) fn new(settings: Settings) -> Self {
        Self { settings }
    }

    fn plan(&self, mut request: Request) -> Result<Plan, Error> {
        let settings = self.settings.clone();
        let chosen = key_field::chosen(request.headers(), &settings.key_field).map_err(Error::request)?;
        let is_keyed = settings.keyed_methods.contains(request.method());
        let key = chosen.or_else(|| is_keyed.then(Key::random));
        let body = match request.body_mut().take() {
            None => BodySource::Bytes(None),
            Some(body) => match body.as_bytes() {
                Some(bytes) => BodySource::Bytes(Some(bytes.to_vec().into())),
                None => BodySource::OneShot(Mutex::new(Some(body))),
            },
        };
        let now = Moment::now();
        let age = KeyAge::new(plan::made_at(key.as_ref(), now.wall), now);
        let mut plan =
            Plan { settings, head: request, body, key, age, is_continued: false, streams_response: false };
        plan.put_key();
        Ok(plan)
    }
}

#[async_trait::async_trait]
impl Middleware for RetryMiddleware {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        let plan = self.plan(request).map_err(reqwest_middleware::Error::middleware)?;
        let span = observe::call_span(plan.head.method(), plan.head.url(), plan.key.as_ref());
        let mut rest = RestOfChain { extensions, next };
        let sent = send::send(&plan, &mut rest).instrument(span).await;
        let mut response = sent.map_err(reqwest_middleware::Error::middleware)?.into_inner();
        if let Some(key) = plan.key {
            response.extensions_mut().insert(key);
        }
        Ok(response)
    }
}

struct RestOfChain<'a> {
    extensions: &'a mut Extensions,
    next: Next<'a>,
}

impl Transport for RestOfChain<'_> {
    async fn send(&mut self, request: Request) -> Result<Response, Failure> {
        let url = request.url().clone();
        self.next.clone().run(request, self.extensions).await.map_err(|error| match error {
            reqwest_middleware::Error::Reqwest(error) => Failure::of(error, &url),
            // Whether it was sent is unknown.
            reqwest_middleware::Error::Middleware(error) => Failure::transport(error.into()),
        })
    }
}
