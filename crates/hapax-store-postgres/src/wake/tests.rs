use std::sync::Arc;

use hapax_core::RecordId;

use super::Wake;
use crate::config::Options;
use crate::link::Link;

/// The listener never gets its turn in these tests, so it is as if no connection came about.
#[tokio::test]
async fn without_a_connection_nothing_is_kept_for_those_who_are_gone() {
    let options = Options::from_url("postgres://shop@127.0.0.1/orders").unwrap();
    let link = Arc::new(Link::new(options).unwrap());
    let wake = Wake::new(&link).unwrap();
    let ids = [1, 2, 3].map(|number| RecordId::from_bytes([number; 32]));
    let kept = || wake.0.records.lock().by_id.len();

    let [one, two, marked] = [ids[0], ids[0], ids[1]].map(|id| wake.watch(id));
    wake.0.marked(&ids[1]);
    drop(one);
    assert_eq!(kept(), 2, "somebody still waits");
    drop((two, marked));
    assert_eq!(kept(), 1, "what is marked stays for whoever looked and waits again");

    let waiting = wake.watch(ids[2]);
    wake.0.cut();
    assert_eq!(kept(), 1, "only for whoever waits");
    drop(waiting);
    assert_eq!(kept(), 0);
}
