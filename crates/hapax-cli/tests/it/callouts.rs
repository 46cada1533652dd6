//! Callouts to the `reconcile` and `authorise` URLs of a route.

use crate::fixture::Fixture;
use crate::sidecar::{Message, Origin, Sidecar, ask, reply};

/// A sidecar with a route `/orders` that sets `option` to this URL.
fn sidecar(fixture: &Fixture, origin: &Origin, option: &str, url: &str) -> Sidecar {
    sidecar_with("", fixture, origin, option, url)
}

fn sidecar_with(more: &str, fixture: &Fixture, origin: &Origin, option: &str, url: &str) -> Sidecar {
    let file = format!("{more}\n[[route]]\npath = \"/orders\"\n{option} = \"{url}/callout\"\n");
    std::fs::write(fixture.path().join("hapax.toml"), file).unwrap();
    Sidecar::start(fixture, &["--upstream", &origin.url()])
}

fn order(sidecar: &Sidecar) -> Message {
    ask(sidecar.address(), "POST /orders\nIdempotency-Key: k\nAuthorization: Bearer of-the-caller", "{}")
}

/// Closes the connection of the first order and accepts the second.
fn crashing_once() -> Origin {
    Origin::start(|_, number| if number == 1 { None } else { reply(201, "second run") })
}

#[test]
fn reconcile_settles_an_operation_that_happened() {
    let origin = crashing_once();
    let reconciler = Origin::start(|_, _| {
        reply(200, r#"{ "applied": true, "status": 201, "headers": { "x-found": "yes" }, "body": "found" }"#)
    });
    let fixture = Fixture::bare();
    let sidecar = sidecar(&fixture, &origin, "reconcile", &reconciler.url());
    assert_eq!(order(&sidecar).status(), 502);
    for _ in 0..2 {
        let answer = order(&sidecar);
        assert_eq!((answer.status(), answer.body.as_str()), (201, "found"));
        assert_eq!(answer.header("x-found"), Some("yes"));
        assert_eq!(answer.header("x-idempotent-replayed"), Some("true"));
    }
    let [callout] = &reconciler.seen()[..] else { panic!("{:?}", reconciler.seen()) };
    assert_eq!(callout.first_line, "POST /callout HTTP/1.1");
    assert_eq!(callout.json()["operation"], origin.seen()[0].header("idempotency-operation").unwrap());
    assert_eq!(callout.json()["attempt"], 1);
    assert_eq!(origin.seen().len(), 1, "nothing ran again");
}

#[test]
fn reconcile_reruns_an_operation_that_did_not_happen() {
    let origin = crashing_once();
    let reconciler = Origin::start(|_, _| reply(200, r#"{ "applied": false }"#));
    let fixture = Fixture::bare();
    let sidecar = sidecar(&fixture, &origin, "reconcile", &reconciler.url());
    assert_eq!(order(&sidecar).status(), 502);
    assert_eq!(order(&sidecar).body, "second run");
    assert_eq!(origin.seen()[1].header("idempotency-attempt"), Some("2"));
}

#[test]
fn reconcile_responses_without_a_verdict_settle_nothing() {
    let answers: [fn() -> Option<String>; 5] = [
        || None,
        || reply(404, r#"{ "applied": false }"#),
        || reply(500, ""),
        || reply(200, "not found"),
        || reply(200, r#"{ "applied": null }"#),
    ];
    for answer in answers {
        let origin = crashing_once();
        let reconciler = Origin::start(move |_, _| answer());
        let fixture = Fixture::bare();
        let sidecar = sidecar(&fixture, &origin, "reconcile", &reconciler.url());
        assert_eq!(order(&sidecar).status(), 502);
        assert_eq!(order(&sidecar).status(), 409, "{:?}", answer());
        assert_eq!((origin.seen().len(), reconciler.seen().len()), (1, 1), "{:?}", answer());
    }
}

#[test]
fn a_caller_that_is_no_longer_authorised_gets_no_replay() {
    let origin = Origin::start(|_, _| reply(201, "made"));
    let authoriser = Origin::start(|_, number| match number {
        1 => reply(204, ""),
        _ => reply(403, "not any more"),
    });
    let fixture = Fixture::bare();
    let sidecar = sidecar(&fixture, &origin, "authorise", &authoriser.url());
    assert_eq!(order(&sidecar).status(), 201);
    let refused = order(&sidecar);
    assert_eq!((refused.status(), refused.body.as_str()), (403, "not any more"));
    assert_eq!(refused.header("x-of-origin"), None, "fields of the authorise response are not forwarded");
    let callout = &authoriser.seen()[0];
    assert_eq!(callout.first_line, "GET /callout HTTP/1.1");
    assert_eq!(callout.header("authorization"), Some("Bearer of-the-caller"));
    assert_eq!(callout.header("x-original-method"), Some("POST"));
    assert_eq!(callout.header("x-original-uri"), Some("/orders"));
    assert_eq!(callout.header("idempotency-key"), None);
    assert_eq!(origin.seen().len(), 1);
}

/// An authorisation service that names the caller by the last word of its token.
fn naming() -> Origin {
    Origin::start(|message, _| {
        let token = message.header("authorization").unwrap_or_default();
        let names = match token.rsplit_once(' ') {
            Some((_, "nameless")) => String::new(),
            Some((_, "twofold")) => "x-caller: a\r\nx-caller: b\r\n".to_owned(),
            Some((_, name)) => format!("x-caller: {name}\r\n"),
            None => return reply(401, ""),
        };
        Some(format!("HTTP/1.1 200 As-Told\r\ncontent-length: 0\r\n{names}\r\n"))
    })
}

#[test]
fn authorise_principal_identifies_a_caller_across_tokens() {
    let origin = Origin::start(|_, number| reply(201, &format!("order {number}")));
    let authoriser = naming();
    let fixture = Fixture::bare();
    let file = format!(
        "[defaults]\nprincipal = \"header:Authorization\"\n[[route]]\npath = \"/orders\"\nauthorise = \"{}/callout\"\n\
         authorise_principal = \"X-Caller\"\n",
        authoriser.url()
    );
    std::fs::write(fixture.path().join("hapax.toml"), file).unwrap();
    let sidecar = Sidecar::start(&fixture, &["--upstream", &origin.url()]);
    let order = |more: &str| ask(sidecar.address(), &format!("POST /orders\nIdempotency-Key: k{more}"), "{}");
    assert_eq!(order("\nAuthorization: t1 alice").body, "order 1");
    let again = order("\nAuthorization: t2 alice");
    assert_eq!((again.body.as_str(), again.header("x-idempotent-replayed")), ("order 1", Some("true")));
    assert_eq!(order("\nAuthorization: t1 bob\nX-Caller: alice").body, "order 2");
    let callout = authoriser.seen();
    assert_eq!(callout.last().unwrap().header("x-caller"), None, "the client's field is removed");
    for token in ["t1 nameless", "t1 twofold"] {
        let refused = order(&format!("\nAuthorization: {token}"));
        assert_eq!(refused.status(), 400, "{token}");
        assert_eq!(refused.json()["type"], "https://hapax.dev/errors/principal-missing");
    }
    assert_eq!(order("").status(), 401, "authorisation precedes identification");
    assert_eq!(origin.seen().len(), 2);
}

#[test]
fn authorise_requests_contain_no_key_whatever_its_header() {
    let origin = Origin::start(|_, _| reply(201, "made"));
    let authoriser = Origin::start(|_, _| reply(204, ""));
    let fixture = Fixture::bare();
    let more = "[defaults]\nkey_from = [\"header:X-Order-Key\", \"header:X-Old-Key\"]\n";
    let sidecar = sidecar_with(more, &fixture, &origin, "authorise", &authoriser.url());
    for header in ["X-Order-Key", "X-Old-Key"] {
        let made = ask(sidecar.address(), &format!("POST /orders\n{header}: k\nX-Other: o"), "{}");
        assert_eq!(made.status(), 201);
    }
    for callout in authoriser.seen() {
        assert_eq!(callout.header("x-other"), Some("o"));
        assert_eq!((callout.header("x-order-key"), callout.header("x-old-key")), (None, None));
    }
    assert_eq!(authoriser.seen().len(), 2);
}

#[test]
fn requests_are_refused_while_authorisation_is_unavailable() {
    let answers: [fn() -> Option<String>; 3] = [|| None, || reply(302, ""), || reply(500, "broken")];
    for answer in answers {
        let origin = Origin::start(|_, _| reply(201, "made"));
        let authoriser = Origin::start(move |_, _| answer());
        let fixture = Fixture::bare();
        let sidecar = sidecar(&fixture, &origin, "authorise", &authoriser.url());
        let refused = order(&sidecar);
        assert_eq!(refused.status(), 503, "{:?}", answer());
        assert_eq!(refused.json()["type"], "https://hapax.dev/errors/authorise-unavailable");
        assert_eq!(refused.header("retry-after"), Some("1"));
        assert_eq!(origin.seen().len(), 0);
    }
}

#[test]
fn oversized_and_late_callout_responses_are_ignored() {
    let origin = crashing_once();
    let reconciler = Origin::start(|_, _| reply(200, "{ \"applied\": false }   "));
    let fixture = Fixture::bare();
    let limits = "[limits]\nask_bytes_max = 20";
    let sidecar = sidecar_with(limits, &fixture, &origin, "reconcile", &reconciler.url());
    assert_eq!(order(&sidecar).status(), 502);
    assert_eq!(order(&sidecar).status(), 409);

    let (_open, gate) = std::sync::mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    let silent = Origin::start(move |_, _| {
        let _ = gate.lock().unwrap().recv();
        None
    });
    let fixture = Fixture::bare();
    let limits = "[limits]\nask_timeout = \"50ms\"";
    let sidecar = sidecar_with(limits, &fixture, &origin, "authorise", &silent.url());
    assert_eq!(order(&sidecar).status(), 503);
    assert_eq!(origin.seen().len(), 1);
}
