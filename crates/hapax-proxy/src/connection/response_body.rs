//! [`OutboundBody`]: the body of a response on a client's connection. It keeps the request open until it has left.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::frame_parts::FrameParts;
use super::paced_body::PacedBody;
use crate::client_io::OpenRequest;
use crate::error::BoxError;
use crate::response_budget::{COUNTED_MIN, StreamHandle};

/// Over HTTP/1 frames are not split: the write timeout of the connection limits the pace.
const PART_MAX: usize = usize::MAX;

pin_project! {
    /// The service's body, or the content of a refusal.
    #[project = OutboundBodyProjection]
    pub(crate) enum OutboundBody<B> {
        /// The service's body, polled directly.
        Direct { #[pin] body: B, request: OpenRequest, parts: Option<Box<FrameParts>> },
        /// The service's body over HTTP/2, with a timeout for each part.
        Paced { paced: PacedBody },
        Fixed { content: Option<Bytes> },
    }
}

impl<B> OutboundBody<B> {
    /// The body over HTTP/1.
    pub(super) fn direct(body: B, request: OpenRequest) -> Self {
        Self::Direct { body, request, parts: None }
    }

    /// The body over HTTP/2, on this stream.
    pub(super) fn paced(
        body: B,
        request: OpenRequest,
        stream: Option<StreamHandle>,
        part_timeout: Duration,
    ) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        if body.is_end_stream() {
            return Self::direct(body, request);
        }
        Self::Paced { paced: PacedBody::new(body, request, stream, part_timeout) }
    }

    pub(super) fn fixed(content: Bytes) -> Self {
        Self::Fixed { content: Some(content).filter(|content| !content.is_empty()) }
    }
}

impl<B> Body for OutboundBody<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.project() {
            OutboundBodyProjection::Direct { body, request, parts } => {
                if let Some(part) = parts.as_mut().and_then(|parts| parts.next_part()) {
                    return Poll::Ready(Some(Ok(Frame::data(part))));
                }
                let Some(frame) = ready!(body.poll_frame(cx)) else { return Poll::Ready(None) };
                let frame = frame.map_err(Into::into)?;
                if parts.is_none() && frame.data_ref().is_none_or(|data| data.len() < COUNTED_MIN) {
                    return Poll::Ready(Some(Ok(frame)));
                }
                let parts = parts.get_or_insert_with(|| Box::new(FrameParts::new(request, None, PART_MAX)));
                Poll::Ready(Some(Ok(parts.first_part(frame))))
            }
            OutboundBodyProjection::Paced { paced } => paced.poll_frame(cx),
            OutboundBodyProjection::Fixed { content } => {
                Poll::Ready(content.take().map(|content| Ok(Frame::data(content))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Direct { body, parts, .. } => {
                body.is_end_stream() && parts.as_ref().is_none_or(|parts| parts.is_empty())
            }
            Self::Paced { paced } => paced.is_end_stream(),
            Self::Fixed { content } => content.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Direct { body, parts, .. } => {
                let (rest, mut hint) =
                    (parts.as_ref().map_or(0, |parts| parts.len()) as u64, body.size_hint());
                if let Some(upper) = hint.upper() {
                    hint.set_upper(upper.saturating_add(rest));
                }
                hint.set_lower(hint.lower().saturating_add(rest));
                hint
            }
            Self::Paced { paced } => paced.size_hint(),
            Self::Fixed { content } => SizeHint::with_exact(content.as_ref().map_or(0, Bytes::len) as u64),
        }
    }
}
