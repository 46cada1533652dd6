//! Requests that no service sees, and fields that clients must not send.

use std::convert::Infallible;
use std::future::pending;

use bytes::Bytes;
use hapax_proxy::{ClientBody, RequestSlot, ReservedFields};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use tokio::sync::mpsc::unbounded_channel;

use super::rig::{Origin, Rig, Setup};
use super::tls::http2_on;

#[tokio::test]
async fn connect_is_refused_and_nothing_is_sent() {
    let origin = Origin::ok().await;
    let rig = Rig::in_front_of(&origin).await;
    let response = rig.exchange("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n").await;
    assert!(response.starts_with("HTTP/1.1 501 ") && response.ends_with("\r\n\r\n"), "{response}");
    assert!(response.contains("\r\nconnection: close\r\n"), "{response}");
    assert_eq!(origin.log.connections(), 0);
}

#[tokio::test]
async fn running_requests_count_after_their_stream_is_reset() {
    let (begin, mut begun) = unbounded_channel();
    // Keeps the slot, as a service does that runs a request to its end.
    let service = tower::service_fn(move |request: Request<ClientBody>| {
        begin.send(request.extensions().get::<RequestSlot>().cloned()).unwrap();
        pending::<Result<Response<Full<Bytes>>, Infallible>>()
    });
    let mut setup = Setup::default();
    setup.transport.streams_max = 1;
    let rig = Rig::serve(service, setup).await;
    let mut sender = http2_on(rig.connect().await).await;
    let get = || Request::get("http://a/").body(Full::default()).unwrap();
    let slot = tokio::select! {
        // Dropping the response resets its stream.
        slot = begun.recv() => slot.unwrap(),
        response = sender.send_request(get()) => panic!("{response:?}"),
    };
    sender.ready().await.unwrap();
    let response = sender.send_request(get()).await.unwrap();
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(response.headers().contains_key("retry-after"));
    drop(slot);
    sender.ready().await.unwrap();
    tokio::select! {
        slot = begun.recv() => assert!(slot.unwrap().is_some()),
        response = sender.send_request(get()) => panic!("{response:?}"),
    }
}

#[tokio::test]
async fn reserved_fields_of_clients_are_removed() {
    let origin = Origin::ok().await;
    let configure = |listener: hapax_proxy::Listener| {
        listener.reserved_fields(ReservedFields { removed: &["x-result"], set_by_service: &["x-user"] })
    };
    let rig = Rig::start(&[origin.url()], Setup { configure, ..Setup::default() }).await;
    rig.exchange(
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Result: 1\r\nX_Result: 1\r\nX-User: 1\r\nX_User: 1\r\nX_Other: 1\r\n\r\n",
    )
    .await;
    let forwarded = origin.log.text();
    for (field, is_kept) in
        [("x-result", false), ("x_result", false), ("x_user", false), ("x-user", true), ("x_other", true)]
    {
        assert_eq!(forwarded.contains(&format!("\r\n{field}: 1\r\n")), is_kept, "{field}: {forwarded}");
    }
}
