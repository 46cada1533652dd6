use super::Notifications;
use crate::config::Options;
use crate::routing::Router;

/// The listener never runs in these tests, so there is no connection.
#[tokio::test]
async fn without_a_connection_no_channel_outlives_its_watchers() {
    let notifications =
        Notifications::new(Router::new(Options::from_url("redis://127.0.0.1").unwrap()).unwrap());
    let kept = || notifications.shared.channels.lock().by_name.len();

    let [one, two, heard] = ["a", "a", "b"].map(|name| notifications.watch(name.to_owned()));
    notifications.shared.subscribed("b");
    drop(one);
    assert_eq!(kept(), 2, "one watcher is left");
    drop((two, heard));
    assert_eq!(kept(), 1, "a subscribed channel lingers");

    let waiting = notifications.watch("c".to_owned());
    notifications.shared.disconnected();
    assert_eq!(kept(), 1, "only watched channels stay");
    drop(waiting);
    assert_eq!(kept(), 0);

    // The last watcher left while its subscription was being made.
    drop(notifications.watch("d".to_owned()));
    notifications.shared.subscribed("d");
    assert!(notifications.shared.unwatched().is_empty());
    assert_eq!(notifications.shared.unwatched(), ["d"]);
}
