//! The listener over real sockets.

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

use crate::showcase::{Filled, Setting, Showcase, TOKEN};
use crate::*;

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The answer, which must be a problem of this code and status.
    #[track_caller]
    pub(crate) fn refused(self, status: u16, code: &str) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["type"], format!("https://hapax.dev/errors/{code}"), "{self:?}");
        assert_eq!(problem["status"], status);
        self
    }

    /// The answer, which must be a success.
    #[track_caller]
    pub(crate) fn ok(self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        self.json()
    }
}

/// One request as it is sent.
pub(crate) struct Ask<'a> {
    show: &'a Showcase,
    request: http::request::Builder,
    body: String,
}

impl Showcase {
    /// A request with nothing but a Host.
    pub(crate) fn ask(&self, method: &str, path: &str) -> Ask<'_> {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let host = self.url.trim_start_matches("http://");
        let request = Request::builder().method(method).uri(path).header("host", host);
        Ask { show: self, request, body: String::new() }
    }

    /// A request with the token.
    pub(crate) fn api(&self, method: &str, path: &str) -> Ask<'_> {
        self.ask(method, path).with("authorization", &format!("Bearer {TOKEN}"))
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.api("GET", path).send().await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.api("POST", path).json(&body).send().await
    }

    pub(crate) async fn version(&self, id: &hapax_core::RecordId) -> String {
        let shown = self.get(&format!("/api/v1/records/{id}")).await.ok();
        shown["record"]["version"].as_str().unwrap().to_owned()
    }
}

impl Ask<'_> {
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

    pub(crate) async fn send(self) -> Answer {
        let address = self.show.url.trim_start_matches("http://");
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
        Answer { status: parts.status, headers: parts.headers, body }
    }
}
