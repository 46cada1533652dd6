//! The `reconcile` and `authorise` URLs of a route.

use crate::fixture::Fixture;
use crate::sidecar::{Message, Origin, Sidecar, ask, reply};

/// A sidecar whose route `/orders` says this about `option`.
fn sidecar(fixture: &Fixture, origin: &Origin, option: &str, url: &str) -> Sidecar {
    sidecar_with("", fixture, origin, option, url)
}

fn sidecar_with(more: &str, fixture: &Fixture, origin: &Origin, option: &str, url: &str) -> Sidecar {
    let file = format!("{more}\n[[route]]\npath = \"/orders\"\n{option} = \"{url}/asked\"\n");
    std::fs::write(fixture.path().join("hapax.toml"), file).unwrap();
    Sidecar::start(fixture, &["--upstream", &origin.url()])
}

fn order(sidecar: &Sidecar) -> Message {
    ask(sidecar.address(), "POST /orders\nIdempotency-Key: k\nAuthorization: Bearer of-the-caller", "{}")
}

/// Hangs up on the first order and takes the next.
fn crashing_once() -> Origin {
    Origin::start(|_, number| if number == 1 { None } else { reply(201, "second run") })
}

#[test]
fn an_operation_that_happened_is_settled_by_who_knows() {
    let origin = crashing_once();
    let knowing = Origin::start(|_, _| {
        reply(200, r#"{ "applied": true, "status": 201, "headers": { "x-found": "yes" }, "body": "found" }"#)
    });
    let fixture = Fixture::bare();
    let sidecar = sidecar(&fixture, &origin, "reconcile", &knowing.url());
    assert_eq!(order(&sidecar).status(), 502);
    for _ in 0..2 {
        let answer = order(&sidecar);
        assert_eq!((answer.status(), answer.body.as_str()), (201, "found"));
        assert_eq!(answer.header("x-found"), Some("yes"));
        assert_eq!(answer.header("x-idempotent-replayed"), Some("true"));
    }
    let [asked] = &knowing.seen()[..] else { panic!("{:?}", knowing.seen()) };
    assert_eq!(asked.first_line, "POST /asked HTTP/1.1");
    assert_eq!(asked.json()["operation"], origin.seen()[0].header("idempotency-operation").unwrap());
    assert_eq!(asked.json()["attempt"], 1);
    assert_eq!(origin.seen().len(), 1, "nothing ran again");
}

#[test]
fn an_operation_that_did_not_happen_runs_again() {
    let origin = crashing_once();
    let knowing = Origin::start(|_, _| reply(200, r#"{ "applied": false }"#));
    let fixture = Fixture::bare();
    let sidecar = sidecar(&fixture, &origin, "reconcile", &knowing.url());
    assert_eq!(order(&sidecar).status(), 502);
    assert_eq!(order(&sidecar).body, "second run");
    assert_eq!(origin.seen()[1].header("idempotency-attempt"), Some("2"));
}

#[test]
fn whoever_does_not_know_settles_nothing() {
    let answers: [fn() -> Option<String>; 5] = [
        || None,
        || reply(404, r#"{ "applied": false }"#),
        || reply(500, ""),
        || reply(200, "not found"),
        || reply(200, r#"{ "applied": null }"#),
    ];
    for answer in answers {
        let origin = crashing_once();
        let asked = Origin::start(move |_, _| answer());
        let fixture = Fixture::bare();
        let sidecar = sidecar(&fixture, &origin, "reconcile", &asked.url());
        assert_eq!(order(&sidecar).status(), 502);
        assert_eq!(order(&sidecar).status(), 409, "{:?}", answer());
        assert_eq!((origin.seen().len(), asked.seen().len()), (1, 1), "{:?}", answer());
    }
}

#[test]
fn a_caller_who_may_no_longer_gets_no_replay() {
    let origin = Origin::start(|_, _| reply(201, "made"));
    let deciding = Origin::start(|_, number| match number {
        1 => reply(204, ""),
        _ => reply(403, "not any more"),
    });
    let fixture = Fixture::bare();
    let sidecar = sidecar(&fixture, &origin, "authorise", &deciding.url());
    assert_eq!(order(&sidecar).status(), 201);
    let refused = order(&sidecar);
    assert_eq!((refused.status(), refused.body.as_str()), (403, "not any more"));
    assert_eq!(refused.header("x-of-origin"), None, "fields of the one who decides stay there");
    let asked = &deciding.seen()[0];
    assert_eq!(asked.first_line, "GET /asked HTTP/1.1");
    assert_eq!(asked.header("authorization"), Some("Bearer of-the-caller"));
    assert_eq!(asked.header("x-original-method"), Some("POST"));
    assert_eq!(asked.header("x-original-uri"), Some("/orders"));
    assert_eq!(asked.header("idempotency-key"), None);
    assert_eq!(origin.seen().len(), 1);
}

/// One who decides and names the caller by the last word of its token.
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
fn a_caller_with_a_renewed_token_is_the_same_where_the_answer_names_it() {
    let origin = Origin::start(|_, number| reply(201, &format!("order {number}")));
    let deciding = naming();
    let fixture = Fixture::bare();
    let file = format!(
        "[defaults]\nprincipal = \"header:Authorization\"\n[[route]]\npath = \"/orders\"\nauthorise = \"{}/asked\"\n\
         authorise_principal = \"X-Caller\"\n",
        deciding.url()
    );
    std::fs::write(fixture.path().join("hapax.toml"), file).unwrap();
    let sidecar = Sidecar::start(&fixture, &["--upstream", &origin.url()]);
    let order = |more: &str| ask(sidecar.address(), &format!("POST /orders\nIdempotency-Key: k{more}"), "{}");
    assert_eq!(order("\nAuthorization: t1 alice").body, "order 1");
    let again = order("\nAuthorization: t2 alice");
    assert_eq!((again.body.as_str(), again.header("x-idempotent-replayed")), ("order 1", Some("true")));
    assert_eq!(order("\nAuthorization: t1 bob\nX-Caller: alice").body, "order 2");
    let asked = deciding.seen();
    assert_eq!(asked.last().unwrap().header("x-caller"), None, "what a caller writes there is no name");
    for token in ["t1 nameless", "t1 twofold"] {
        let refused = order(&format!("\nAuthorization: {token}"));
        assert_eq!(refused.status(), 400, "{token}");
        assert_eq!(refused.json()["type"], "https://hapax.dev/errors/principal-missing");
    }
    assert_eq!(order("").status(), 401, "first whether it may, then who it is");
    assert_eq!(origin.seen().len(), 2);
}

#[test]
fn whoever_decides_sees_no_key_whatever_its_header_is_called() {
    let origin = Origin::start(|_, _| reply(201, "made"));
    let deciding = Origin::start(|_, _| reply(204, ""));
    let fixture = Fixture::bare();
    let more = "[defaults]\nheader = \"X-Order-Key\"\naliases = [\"X-Old-Key\"]\n";
    let sidecar = sidecar_with(more, &fixture, &origin, "authorise", &deciding.url());
    for header in ["X-Order-Key", "X-Old-Key"] {
        let made = ask(sidecar.address(), &format!("POST /orders\n{header}: k\nX-Other: o"), "{}");
        assert_eq!(made.status(), 201);
    }
    for asked in deciding.seen() {
        assert_eq!(asked.header("x-other"), Some("o"));
        assert_eq!((asked.header("x-order-key"), asked.header("x-old-key")), (None, None));
    }
    assert_eq!(deciding.seen().len(), 2);
}

#[test]
fn nothing_goes_on_while_nobody_decides() {
    let answers: [fn() -> Option<String>; 3] = [|| None, || reply(302, ""), || reply(500, "broken")];
    for answer in answers {
        let origin = Origin::start(|_, _| reply(201, "made"));
        let deciding = Origin::start(move |_, _| answer());
        let fixture = Fixture::bare();
        let sidecar = sidecar(&fixture, &origin, "authorise", &deciding.url());
        let refused = order(&sidecar);
        assert_eq!(refused.status(), 503, "{:?}", answer());
        assert_eq!(refused.json()["type"], "https://hapax.dev/errors/authorise-unavailable");
        assert_eq!(refused.header("retry-after"), Some("1"));
        assert_eq!(origin.seen().len(), 0);
    }
}

#[test]
fn an_answer_that_is_too_large_or_too_late_is_none() {
    let origin = crashing_once();
    let knowing = Origin::start(|_, _| reply(200, "{ \"applied\": false }   "));
    let fixture = Fixture::bare();
    let limits = "[limits]\nask_bytes_max = 20";
    let sidecar = sidecar_with(limits, &fixture, &origin, "reconcile", &knowing.url());
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
