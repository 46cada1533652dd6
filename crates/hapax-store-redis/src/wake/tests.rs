use super::Wake;
use crate::config::Options;
use crate::way::Way;

/// The listener never gets its turn in these tests, so it is as if no connection came about.
#[tokio::test]
async fn without_a_connection_nothing_is_kept_for_those_who_are_gone() {
    let wake = Wake::new(Way::new(Options::from_url("redis://127.0.0.1").unwrap()).unwrap());
    let kept = || wake.shared.channels.lock().by_name.len();

    let [one, two, heard] = ["a", "a", "b"].map(|name| wake.watch(name.to_owned()));
    wake.shared.subscribed("b");
    drop(one);
    assert_eq!(kept(), 2, "somebody still waits");
    drop((two, heard));
    assert_eq!(kept(), 1, "what is listened to stays for whoever looked and waits again");

    let waiting = wake.watch("c".to_owned());
    wake.shared.cut();
    assert_eq!(kept(), 1, "only for whoever waits");
    drop(waiting);
    assert_eq!(kept(), 0);

    // The last one left while it was being subscribed to.
    drop(wake.watch("d".to_owned()));
    wake.shared.subscribed("d");
    assert!(wake.shared.deserted().is_empty());
    assert_eq!(wake.shared.deserted(), ["d"]);
}
