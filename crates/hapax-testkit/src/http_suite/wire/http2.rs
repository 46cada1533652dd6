//! HTTP/2 with prior knowledge, by hyper's client.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::{Either, select};
use http::{HeaderMap, Request};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::{ExchangeError, WireResponse};
use crate::http_suite::case::Send;
use crate::http_suite::origin::fields;

pub(super) async fn exchange(
    leave: impl Future<Output = ()>,
    addr: SocketAddr,
    send: &Send,
) -> Result<WireResponse, ExchangeError> {
    let request = request(addr, send).map_err(|error| ExchangeError::because("not for HTTP/2", error))?;
    let stream = TcpStream::connect(addr).await.map_err(|error| ExchangeError::because("connect", error))?;
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .map_err(|error| ExchangeError::because("shake hands", error))?;
    // Dropping the set ends the connection and its open streams.
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let talk = async {
        let response = sender.send_request(request).await;
        let response = response.map_err(|error| ExchangeError::because("the request", error))?;
        Ok(read(response).await)
    };
    let talked = match select(pin!(leave), pin!(talk)).await {
        Either::Left(((), _)) => None,
        Either::Right((answer, _)) => Some(answer),
    };
    if let Some(answer) = talked {
        return answer;
    }
    // Without streams and without handles that could open one, the connection sends GOAWAY and ends.
    drop(sender);
    driver.join_next().await;
    Err(ExchangeError::hung_up())
}

fn request(addr: SocketAddr, send: &Send) -> Result<Request<SendBody>, http::Error> {
    let host = send.host.clone().unwrap_or_else(|| addr.to_string());
    let content = send.content();
    let mut request = Request::builder()
        .method(send.method.as_str())
        .uri(format!("http://{host}{}", send.path))
        .body(SendBody::new(content.unwrap_or_default(), send, fields(&send.trailers)?))?;
    *request.headers_mut() = fields(&send.lines())?;
    Ok(request)
}

async fn read(response: http::Response<Incoming>) -> WireResponse {
    let (head, mut body) = response.into_parts();
    let mut answer = WireResponse {
        status: head.status.as_u16(),
        headers: owned(&head.headers),
        ..WireResponse::default()
    };
    let mut content = Vec::new();
    while let Some(frame) = body.frame().await {
        match frame.map(Frame::into_data) {
            Ok(Ok(data)) => content.extend_from_slice(&data),
            Ok(Err(frame)) => answer.trailers = frame.trailers_ref().map(owned).unwrap_or_default(),
            Err(_) => {
                answer.cut = true;
                break;
            }
        }
    }
    answer.body = content.into();
    answer
}

fn owned(fields: &HeaderMap) -> Vec<(String, Bytes)> {
    let owned = |value: &http::HeaderValue| Bytes::copy_from_slice(value.as_bytes());
    fields.iter().map(|(name, value)| (name.as_str().to_owned(), owned(value))).collect()
}

/// The frames of a request; the last may be an error, which resets the stream.
struct SendBody(VecDeque<Result<Frame<Bytes>, io::Error>>);

impl SendBody {
    fn new(mut content: Bytes, send: &Send, trailers: HeaderMap) -> Self {
        let mut frames = VecDeque::new();
        if let Some(cut) = send.cut {
            content.truncate(cut);
        }
        while !content.is_empty() {
            let length = send.chunked.unwrap_or(content.len()).clamp(1, content.len());
            frames.push_back(Ok(Frame::data(content.split_to(length))));
        }
        if send.cut.is_some() {
            frames.push_back(Err(io::Error::other("the case cuts the body off")));
        } else if !trailers.is_empty() {
            frames.push_back(Ok(Frame::trailers(trailers)));
        }
        Self(frames)
    }
}

impl Body for SendBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Ready(self.0.pop_front())
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }
}
