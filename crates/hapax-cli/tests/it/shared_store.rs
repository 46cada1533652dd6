//! Requirements on stores that several sidecars share.

use std::sync::{Arc, Barrier};
use std::thread;

use crate::binary::alone;
use crate::fixture::KEY;
use crate::sidecar::{Origin, Sidecar, ask, reply};

pub(crate) const ORDER: &str = "{\"item\":\"book\"}";

/// The number of concurrent callers of each sidecar.
const CALLERS: usize = 4;

pub(crate) fn keyed(name: &str) -> String {
    format!("POST /orders\nIdempotency-Key: {KEY}-{name}")
}

/// A service that counts its orders.
pub(crate) fn orders() -> Origin {
    Origin::start(|_, number| reply(201, &format!("order {number}")))
}

/// Sends requests through sidecars on one store, one after the other and concurrently. The origin has seen none before.
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
        assert_eq!(origin.seen().len(), 2 + round, "one of them reaches the service");
    }
}

/// Makes the store's server unavailable and available again: meanwhile requests are refused in time, and afterwards the
/// sidecar works without a restart.
pub(crate) fn recovers_from_an_outage(
    sidecar: &Sidecar,
    origin: &Origin,
    way: &str,
    begin: impl Fn(),
    end: impl Fn(),
) {
    let (before, without) = (keyed(&format!("before-{way}")), keyed(&format!("without-{way}")));
    let first = ask(sidecar.address(), &before, ORDER);
    assert_eq!(first.status(), 201);
    let ran = origin.seen().len();
    begin();
    assert_eq!(ask(sidecar.address(), &without, ORDER).status(), 503, "{way}");
    assert_eq!(ask(sidecar.admin(), "GET /readyz", "").status(), 503, "{way}");
    assert_eq!(origin.seen().len(), ran, "{way}");
    alone(end);
    until_ready(sidecar);
    let replayed = ask(sidecar.address(), &before, ORDER);
    assert_eq!((replayed.status(), replayed.body), (201, first.body), "{way}");
    let mut after = ask(sidecar.address(), &without, ORDER);
    // The claim of the refused request may have reached the store, and is released.
    while after.status() == 409 {
        after = ask(sidecar.address(), &without, ORDER);
    }
    assert_eq!(after.body, format!("order {}", ran + 1), "{way}");
}

/// Waits until the sidecar is ready.
pub(crate) fn until_ready(sidecar: &Sidecar) {
    while ask(sidecar.admin(), "GET /readyz", "").status() != 200 {}
}
