use std::sync::Arc;

use hapax_core::RecordId;

use super::Notifications;
use crate::config::Options;
use crate::pool::ConnectionPool;

/// The listener never runs in these tests, so there is no connection.
#[tokio::test]
async fn without_a_connection_no_record_outlives_its_watchers() {
    let options = Options::from_url("postgres://shop@127.0.0.1/orders").unwrap();
    let pool = Arc::new(ConnectionPool::new(options).unwrap());
    let wake = Notifications::new(&pool).unwrap();
    let ids = [1, 2, 3].map(|number| RecordId::from_bytes([number; 32]));
    let kept = || wake.0.records.lock().by_id.len();

    let [one, two, marked] = [ids[0], ids[0], ids[1]].map(|id| wake.watch(id));
    wake.0.marked(&ids[1]);
    drop(one);
    assert_eq!(kept(), 2, "one watcher is left");
    drop((two, marked));
    assert_eq!(kept(), 1, "a marked record lingers");

    let waiting = wake.watch(ids[2]);
    wake.0.disconnected();
    assert_eq!(kept(), 1, "only watched records stay");
    drop(waiting);
    assert_eq!(kept(), 0);
}
