//! After a failure that nobody can judge the store stops, and nobody waits for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hapax_core::{Clock, ManualClock, Query, Store, StoreErrorKind, Timestamp};
use hapax_store_file::FileStore;

use crate::fixture::{Home, acquire, ask, finish, look_up, scoped};

/// A clock that can be told to break, and takes the thread that asks it down.
#[derive(Debug)]
struct BreakingClock {
    clock: ManualClock,
    broken: Arc<AtomicBool>,
}

impl Clock for BreakingClock {
    fn now(&self) -> Timestamp {
        assert!(!self.broken.load(Ordering::SeqCst), "the clock broke");
        self.clock.now()
    }
}

#[tokio::test]
async fn a_panic_in_the_writer_is_an_error_for_all_who_wait() {
    let home = Home::new();
    let broken = Arc::new(AtomicBool::new(false));
    let clock = BreakingClock { clock: home.clock.clone(), broken: Arc::clone(&broken) };
    let store = FileStore::options().clock(clock).open(home.path()).unwrap();
    finish(&store, "before", "x").await;
    broken.store(true, Ordering::SeqCst);
    // The one whose transaction broke does not know; those after it are not served.
    let error = store.claim(&ask("during")).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unknown);
    broken.store(false, Ordering::SeqCst);
    assert_eq!(store.claim(&ask("after")).await.unwrap_err().kind(), StoreErrorKind::Stopped);
    assert_eq!(store.sweep(1).await.unwrap_err().kind(), StoreErrorKind::Stopped);
    assert_eq!(store.get(&scoped("before").id).await.unwrap_err().kind(), StoreErrorKind::Stopped);
    assert_eq!(store.list(&Query::default()).await.unwrap_err().kind(), StoreErrorKind::Stopped);
    assert_eq!(store.stats().await.unwrap_err().kind(), StoreErrorKind::Stopped);
    assert_eq!(store.health().await.unwrap_err().kind(), StoreErrorKind::Stopped);
    drop(store);

    let store = home.open();
    look_up(&store, &scoped("before").id).await;
    acquire(&store, "after").await;
}
