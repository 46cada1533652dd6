//! Tests of the listener over sockets.

mod access;
mod changes;
mod description;
mod limits;
mod reading;
pub(crate) mod tools;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use crate::test_listener::{Filled, Setup, TOKEN, TestListener};
use crate::*;

/// A received response.
#[derive(Debug)]
pub(crate) struct TestResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl TestResponse {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The response, which must be a problem with this code and status.
    #[track_caller]
    pub(crate) fn refused(self, status: u16, code: &str) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["type"], format!("https://hapax.dev/errors/{code}"), "{self:?}");
        assert_eq!(problem["status"], status);
        self
    }

    /// The JSON body of the response, which must be a success.
    #[track_caller]
    pub(crate) fn ok(self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        self.json()
    }
}

/// A request to be sent.
pub(crate) struct TestRequest<'a> {
    listener: &'a TestListener,
    request: http::request::Builder,
    body: String,
}

impl TestListener {
    /// A request without authentication.
    pub(crate) fn ask(&self, method: &str, path: &str) -> TestRequest<'_> {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let host = self.url.trim_start_matches("http://");
        let request = Request::builder().method(method).uri(path).header("host", host);
        TestRequest { listener: self, request, body: String::new() }
    }

    /// A request with the token.
    pub(crate) fn api(&self, method: &str, path: &str) -> TestRequest<'_> {
        self.ask(method, path).with("authorization", &format!("Bearer {TOKEN}"))
    }

    pub(crate) async fn get(&self, path: &str) -> TestResponse {
        self.api("GET", path).send().await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> TestResponse {
        self.api("POST", path).json(&body).send().await
    }

    pub(crate) async fn version(&self, id: &hapax_core::RecordId) -> String {
        let shown = self.get(&format!("/api/v1/records/{id}")).await.ok();
        shown["record"]["version"].as_str().unwrap().to_owned()
    }
}

impl TestRequest<'_> {
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        let headers = self.request.headers_mut().unwrap();
        headers.insert(http::HeaderName::try_from(name).unwrap(), value.parse().unwrap());
        self
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        Self { body: body.to_string(), ..self.with("content-type", "application/json") }
    }

    pub(crate) fn body(self, body: String) -> Self {
        Self { body, ..self }
    }

    pub(crate) async fn send(self) -> TestResponse {
        let address = self.listener.url.trim_start_matches("http://");
        let stream = TcpStream::connect(address).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        let connection = tokio::spawn(connection);
        let request = self.request.body(Full::new(Bytes::from(self.body))).unwrap();
        let response = sender.send_request(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        drop(sender);
        connection.await.unwrap().unwrap();
        let body = String::from_utf8(body.to_vec()).unwrap();
        TestResponse { status: parts.status, headers: parts.headers, body }
    }
}
