//! What the `reqsign` sources need of this process: its environment, files, and HTTP requests over this crate's client.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use reqsign_core::{Context, Env, Error, FileRead, HttpSend, Result};
use tokio::time::timeout;

use crate::connection::{Connector, Endpoint, exchange};

/// The timeout of one request to a credentials endpoint.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// The environment of this process.
pub(crate) fn process_context() -> Context {
    Context::new().with_env(Environment).with_file_read(Files).with_http_send(HttpClient::default())
}

/// The variables that are set, not empty and UTF-8. The library's own reader panics when any of them is not UTF-8.
#[derive(Debug)]
struct Environment;

impl Env for Environment {
    fn var(&self, name: &str) -> Option<String> {
        std::env::var(name).ok().filter(|value| !value.is_empty())
    }

    fn vars(&self) -> HashMap<String, String> {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok().filter(|value| !value.is_empty())?))
        };
        std::env::vars_os().filter_map(text).collect()
    }

    fn home_dir(&self) -> Option<PathBuf> {
        std::env::home_dir()
    }
}

/// Reads files without blocking the runtime.
#[derive(Debug)]
pub(crate) struct Files;

impl FileRead for Files {
    async fn file_read(&self, path: &str) -> Result<Vec<u8>> {
        let path = path.to_owned();
        let reading = tokio::task::spawn_blocking(move || std::fs::read(path));
        let read = reading.await.map_err(|_| Error::unexpected("reading the file was cancelled"))?;
        Ok(read?)
    }
}

/// Sends each request on a new connection: there is one every few minutes.
#[derive(Default)]
pub(crate) struct HttpClient(Connector);

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpClient")
    }
}

impl HttpSend for HttpClient {
    async fn http_send(&self, request: http::Request<Bytes>) -> Result<http::Response<Bytes>> {
        let address = Endpoint::parse(&request.uri().to_string());
        let (endpoint, path) =
            address.ok_or_else(|| Error::config_invalid("its address is not an http or https URL"))?;
        let (mut head, body) = request.into_parts();
        head.uri = path.parse()?;
        head.headers.insert(http::header::HOST, endpoint.authority().parse()?);
        let request = http::Request::from_parts(head, Full::new(body));
        let sending = async {
            let failed = |why| Error::unexpected(why).set_retryable(true);
            let mut sender =
                self.0.connect(&endpoint).await.map_err(|_| failed("the connection cannot be made"))?;
            exchange(&mut sender, request).await.map_err(|_| failed("the connection broke"))
        };
        let (head, body) = timeout(REQUEST_TIMEOUT, sending)
            .await
            .map_err(|_elapsed| Error::unexpected("it did not answer in time").set_retryable(true))??;
        Ok(http::Response::from_parts(head, body.into()))
    }
}
