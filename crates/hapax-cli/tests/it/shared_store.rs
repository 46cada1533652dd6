//! What every store must stand that several sidecars share.

use std::sync::{Arc, Barrier};
use std::thread;

use crate::binary::alone;
use crate::fixture::KEY;
use crate::sidecar::{Origin, Sidecar, ask, reply};

pub(crate) const ORDER: &str = "{\"item\":\"book\"}";

/// How many callers each sidecar has at once.
const CALLERS: usize = 4;

pub(crate) fn keyed(name: &str) -> String {
    format!("POST /orders\nIdempotency-Key: {KEY}-{name}")
}

/// A service that counts its orders.
pub(crate) fn orders() -> Origin {
    Origin::start(|_, number| reply(201, &format!("order {number}")))
}

/// Asks sidecars on one store, which have asked `origin` for nothing yet, one after the other and all at once.
pub(crate) fn act_as_one(sidecars: &[Sidecar], origin: &Origin) {
    for (number, sidecar) in sidecars.iter().enumerate() {
        let answer = ask(sidecar.address(), &keyed("replayed"), ORDER);
        assert_eq!((answer.status(), answer.body.as_str()), (201, "order 1"));
        let is_replayed = answer.header("x-idempotent-replayed") == Some("true");
        assert_eq!(is_replayed, number > 0);
    }
    for round in 0..10 {
        let callers = CALLERS * sidecars.len();
        let together = Arc::new(Barrier::new(callers));
        let head = keyed(&format!("at-once-{round}"));
        let asking: Vec<_> = (0..callers)
            .map(|number| {
                let address = sidecars[number % sidecars.len()].address();
                let (together, head) = (together.clone(), head.clone());
                thread::spawn(move || {
                    together.wait();
                    ask(address, &head, ORDER).status()
                })
            })
            .collect();
        let statuses: Vec<u16> = asking.into_iter().map(|asking| asking.join().unwrap()).collect();
        assert!(
            statuses.contains(&201) && statuses.iter().all(|status| [201, 409].contains(status)),
            "{statuses:?}"
        );
        assert_eq!(origin.seen().len(), 2 + round, "one of them reached the service");
    }
}

/// Takes the server of the store away and brings it back: nothing runs without it, and nobody restarts the sidecar.
pub(crate) fn outlives_an_outage(sidecar: &Sidecar, origin: &Origin, kill: impl Fn(), restart: impl Fn()) {
    assert_eq!(ask(sidecar.address(), &keyed("before"), ORDER).status(), 201);
    kill();
    assert_eq!(ask(sidecar.address(), &keyed("without"), ORDER).status(), 503);
    assert_eq!(ask(sidecar.admin(), "GET /readyz", "").status(), 503);
    assert_eq!(origin.seen().len(), 1);
    alone(restart);
    until_ready(sidecar);
    let replayed = ask(sidecar.address(), &keyed("before"), ORDER);
    assert_eq!((replayed.status(), replayed.body.as_str()), (201, "order 1"));
    assert_eq!(ask(sidecar.address(), &keyed("without"), ORDER).body, "order 2");
}

/// Asks until the sidecar has its store again.
pub(crate) fn until_ready(sidecar: &Sidecar) {
    while ask(sidecar.admin(), "GET /readyz", "").status() != 200 {}
}
