//! Traces by OTLP, as a collector receives them.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use axum::body::Bytes;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

use crate::binary::command;
use crate::fixture::{Fixture, KEY};
use crate::sidecar::{Client, Message, Origin, Sidecar, ask, reply};

const ORDER: &str = "{\"item\":\"canary-body\"}";
const TOKEN: &str = "canary-token";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

/// A collector that holds its response to each batch until the gate is opened or dropped.
struct Collector {
    url: String,
    received: Receiver<Bytes>,
    gate: Option<Sender<()>>,
}

impl Collector {
    fn start() -> Self {
        let mut collector = Self::holding();
        collector.gate = None;
        collector
    }

    fn holding() -> Self {
        let (gate, held) = channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let (sender, received) = channel();
        let (address_sender, address) = channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                address_sender.send(listener.local_addr().unwrap()).unwrap();
                let take = move |body: Bytes| {
                    let held = held.clone();
                    let _ = sender.send(body);
                    async move {
                        let _ = tokio::task::spawn_blocking(move || held.lock().unwrap().recv()).await;
                    }
                };
                axum::serve(listener, axum::Router::new().route("/v1/traces", post(take))).await.unwrap();
            });
        });
        Self { url: format!("http://{}", address.recv().unwrap()), received, gate: Some(gate) }
    }

    /// All spans so far, and the name of their service.
    fn spans(&self) -> Spans {
        let bytes: Vec<Bytes> = self.received.try_iter().collect();
        let mut spans = Vec::new();
        let mut service = None;
        for request in bytes.iter().map(|body| ExportTraceServiceRequest::decode(body.clone()).unwrap()) {
            for resource in request.resource_spans {
                let attributes = resource.resource.unwrap().attributes;
                let named = attributes.into_iter().find(|attribute| attribute.key == "service.name");
                service = named.map(|named| text(named.value.unwrap().value.unwrap()));
                spans.extend(resource.scope_spans.into_iter().flat_map(|scope| scope.spans));
            }
        }
        Spans { bytes, spans, service }
    }
}

struct Spans {
    bytes: Vec<Bytes>,
    spans: Vec<Span>,
    service: Option<String>,
}

const SERVER: i32 = 2;
const CLIENT: i32 = 3;

impl Spans {
    fn of(&self, kind: i32) -> Vec<&Span> {
        let mut spans: Vec<_> = self.spans.iter().filter(|span| span.kind == kind).collect();
        spans.sort_by_key(|span| span.start_time_unix_nano);
        spans
    }
}

fn text(value: Value) -> String {
    match value {
        Value::StringValue(text) => text,
        Value::IntValue(number) => number.to_string(),
        other => panic!("{other:?}"),
    }
}

fn attribute(span: &Span, name: &str) -> Option<String> {
    let attribute = span.attributes.iter().find(|attribute| attribute.key == name)?;
    Some(text(attribute.value.clone()?.value?))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn keyed(name: &str) -> String {
    format!("POST /orders/canary-path?q=canary-query\nIdempotency-Key: {KEY}-{name}\nAuthorization: {TOKEN}")
}

/// A sidecar that exports its spans at shutdown only.
fn traced(fixture: &Fixture, origin: &Origin, collector: &Collector, more: &str) -> Sidecar {
    let file = format!(
        "[trace]\nendpoint = \"{}\"\ninterval = \"1h\"\n{more}\n[[route]]\npath = \"/orders/**\"\n",
        collector.url
    );
    std::fs::write(fixture.path().join("hapax.toml"), file).unwrap();
    Sidecar::start(fixture, &["--upstream", &origin.url()])
}

fn end(sidecar: Sidecar) -> Vec<String> {
    sidecar.signal("TERM");
    let (code, log) = sidecar.ended();
    assert_eq!(code, Some(0), "{log:?}");
    log
}

#[test]
fn every_request_has_a_span_with_its_outcome_and_no_secret() {
    let (open, gate) = channel::<()>();
    let gate = Mutex::new(gate);
    let (arrival, arrivals) = channel();
    let origin = Origin::start(move |request: &Message, _| {
        let key = request.header("idempotency-key").unwrap_or_default();
        if key.ends_with("slow") {
            arrival.send(()).unwrap();
            gate.lock().unwrap().recv().unwrap();
        }
        if key.ends_with("lost") { None } else { reply(201, "canary-answer") }
    });
    let (fixture, collector) = (Fixture::bare(), Collector::start());
    let sidecar = traced(&fixture, &origin, &collector, "");
    let mut slow = Client::to(sidecar.address());
    slow.send(&keyed("slow"), ORDER);
    arrivals.recv().unwrap();
    let expected = [
        (keyed("slow"), ORDER, 409, "in_progress"),
        (keyed("a"), ORDER, 201, "ran"),
        (keyed("a"), ORDER, 201, "replayed"),
        (keyed("a"), "{}", 422, "mismatch"),
        (keyed("lost"), ORDER, 502, "uncertain"),
        (keyed("lost"), ORDER, 409, "uncertain"),
        ("POST /orders/1\nIdempotency-Key: ".to_owned(), ORDER, 400, "refused"),
        ("POST /orders/1".to_owned(), ORDER, 201, "passed"),
        ("GET /elsewhere".to_owned(), "", 201, "passed"),
    ];
    for (head, body, status, outcome) in &expected {
        assert_eq!(ask(sidecar.address(), head, body).status(), *status, "{outcome}");
    }
    open.send(()).unwrap();
    assert_eq!(slow.answer().status(), 201);
    end(sidecar);

    let spans = collector.spans();
    assert_eq!(spans.service.as_deref(), Some("hapax"));
    let served = spans.of(SERVER);
    let outcomes: Vec<_> = served
        .iter()
        .map(|span| (attribute(span, "http.response.status_code"), attribute(span, "hapax.outcome")))
        .collect();
    let all =
        [(201, "ran")].into_iter().chain(expected.iter().map(|(_, _, status, outcome)| (*status, *outcome)));
    let all: Vec<_> =
        all.map(|(status, outcome)| (Some(status.to_string()), Some(outcome.to_owned()))).collect();
    assert_eq!(outcomes, all);
    let [_, _, first, replay, _, lost, ..] = &served[..] else { panic!("{served:?}") };
    assert_eq!(
        (first.name.as_str(), attribute(first, "http.route").as_deref()),
        ("POST /orders/**", Some("/orders/**"))
    );
    assert_eq!(attribute(first, "hapax.attempt").as_deref(), Some("1"));
    assert_eq!(attribute(first, "hapax.record"), attribute(replay, "hapax.record"));
    assert_eq!(attribute(replay, "hapax.attempt"), None);
    let [link] = &replay.links[..] else { panic!("{replay:?}") };
    assert_eq!((&link.trace_id, &link.span_id), (&first.trace_id, &first.span_id));
    assert!(first.links.is_empty());

    // The spans of upstream calls are children of the spans of their requests.
    let calls = spans.of(CLIENT);
    assert_eq!(calls.len(), origin.seen().len());
    let of_lost = calls.iter().find(|call| call.parent_span_id == lost.span_id).unwrap();
    assert_eq!(attribute(of_lost, "error.type").as_deref(), Some("no_answer"));
    for bytes in &spans.bytes {
        let seen = String::from_utf8_lossy(bytes);
        assert!(!seen.contains("canary") && !seen.contains(KEY), "{seen}");
    }
}

#[test]
fn the_trace_of_a_caller_continues_through_the_sidecar() {
    let origin = Origin::start(|_, _| reply(200, "done"));
    let (fixture, collector) = (Fixture::bare(), Collector::start());
    let sidecar = traced(&fixture, &origin, &collector, "sample_ratio = 0");
    let trace = |flags: &str| format!("traceparent: 00-{TRACE}-{CALLER}-{flags}\ntracestate: a=b");
    for (name, flags) in [("a", "01"), ("b", "00")] {
        ask(sidecar.address(), &format!("{}\n{}", keyed(name), trace(flags)), ORDER);
    }
    ask(sidecar.address(), &keyed("c"), ORDER);
    ask(sidecar.address(), &format!("{}\ntraceparent: 00-zz-{CALLER}-01", keyed("d")), ORDER);
    end(sidecar);

    // The first two are sampled as the caller decided; none of the others are.
    let spans = collector.spans();
    let ([served], [call]) = (&spans.of(SERVER)[..], &spans.of(CLIENT)[..]) else {
        panic!("{:?}", spans.spans)
    };
    assert_eq!((hex(&served.trace_id), hex(&served.parent_span_id)), (TRACE.to_owned(), CALLER.to_owned()));
    assert_eq!((&call.trace_id, &call.parent_span_id), (&served.trace_id, &served.span_id));
    let seen = origin.seen();
    let parents: Vec<_> = seen.iter().map(|request| request.header("traceparent").unwrap()).collect();
    assert_eq!(parents[0], format!("00-{TRACE}-{}-01", hex(&call.span_id)));
    assert!(parents[1].starts_with(&format!("00-{TRACE}-")) && parents[1].ends_with("-00"), "{parents:?}");
    assert!(!parents[1].contains(CALLER), "{parents:?}");
    assert_eq!(seen[0].header("tracestate"), Some("a=b"));
    for (request, parent) in seen.iter().zip(&parents).skip(2) {
        assert!(!parent.contains(TRACE) && parent.ends_with("-00") && parent.len() == 55, "{parent}");
        assert_eq!(request.header("tracestate"), None);
    }
}

#[test]
fn without_a_collector_trace_headers_are_forwarded_unchanged() {
    let origin = Origin::start(|_, _| reply(200, "done"));
    let fixture = Fixture::bare();
    let sidecar = Sidecar::start(&fixture, &["--upstream", &origin.url()]);
    let parent = format!("00-{TRACE}-{CALLER}-01");
    ask(sidecar.address(), &format!("{}\ntraceparent: {parent}", keyed("a")), ORDER);
    ask(sidecar.address(), &keyed("b"), ORDER);
    let parents: Vec<_> =
        origin.seen().iter().map(|request| request.header("traceparent").map(str::to_owned)).collect();
    assert_eq!(parents, [Some(parent), None]);
}

#[test]
fn standard_variables_enable_tracing() {
    let origin = Origin::start(|_, _| reply(200, "done"));
    let (fixture, collector) = (Fixture::bare(), Collector::start());
    std::fs::write(fixture.path().join("hapax.toml"), "[trace]\ninterval = \"1h\"\n").unwrap();
    let mut typed = command(fixture.path());
    typed.args(["serve", "--json", "--listen", "127.0.0.1:0", "--admin", "off", "--upstream", &origin.url()]);
    typed.env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url).env("OTEL_SERVICE_NAME", "orders-sidecar");
    let sidecar = Sidecar::spawn(&mut typed);
    ask(sidecar.address(), &keyed("a"), ORDER);
    end(sidecar);
    let spans = collector.spans();
    assert_eq!((spans.spans.len(), spans.service.as_deref()), (2, Some("orders-sidecar")));
}

#[test]
fn an_unreachable_collector_does_not_affect_requests() {
    let origin = Origin::start(|_, number| reply(201, &format!("order {number}")));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let dead = Collector { url: format!("http://{}", listener.local_addr().unwrap()), ..Collector::start() };
    drop(listener);
    let fixture = Fixture::bare();
    let mut sidecar = traced(&fixture, &origin, &dead, "batch_max = 1");
    for _ in 0..3 {
        let answer = ask(sidecar.address(), &keyed("a"), ORDER);
        assert_eq!((answer.status(), answer.body.as_str()), (201, "order 1"));
    }
    let logged = sidecar.logged("the collector does not accept traces");
    assert!(logged.contains("no connection"), "{logged}");
    let metrics = ask(sidecar.admin(), "GET /metrics", "").body;
    assert!(metrics.contains("hapax_trace_batches_total{result=\"lost\"}"), "{metrics}");
    let log = end(sidecar);
    assert_eq!(log.iter().filter(|line| line.contains("does not accept traces")).count(), 1, "{log:?}");
}

#[test]
fn a_slow_collector_delays_no_request_and_the_queue_is_bounded() {
    let origin = Origin::start(|_, _| reply(200, "done"));
    let (fixture, mut collector) = (Fixture::bare(), Collector::holding());
    let more = "batch_max = 1\nqueue_max = 2\ntimeout = \"10m\"";
    let sidecar = traced(&fixture, &origin, &collector, more);
    let mut client = Client::to(sidecar.address());
    for number in 0..20 {
        assert_eq!(client.ask(&keyed(&number.to_string()), ORDER).status(), 200);
    }
    drop(client);
    drop(collector.gate.take());
    end(sidecar);
    // One in flight and two in the queue while the gate was closed, and those that ended after it was opened.
    let received = collector.spans().spans.len();
    assert!((1..=5).contains(&received), "{received} of 40");
}
