//! Options that make no sense are refused where they are set.

use std::time::Duration;

use hapax::events::{BackOff, Consumer};
use hapax::{Hapax, Keeper, MemoryStore};

fn refused(set: impl FnOnce(Consumer) -> Consumer + std::panic::UnwindSafe) -> bool {
    let set = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let hapax = Hapax::builder(MemoryStore::new()).keeper(Keeper::SharedRuntime).build();
            drop(set(Consumer::new(&hapax, "billing")));
        });
    };
    std::panic::catch_unwind(set).is_err()
}

#[test]
fn nonsense_is_refused() {
    let zero = Duration::ZERO;
    assert!(!refused(|consumer| consumer.tries_max(1).crashes_max(1).concurrency(1).in_hand_max(1)));
    assert!(refused(|consumer| consumer.tries_max(0)));
    assert!(refused(|consumer| consumer.crashes_max(0)));
    assert!(refused(|consumer| consumer.concurrency(0)));
    assert!(refused(|consumer| consumer.in_hand_max(0)));
    assert!(refused(move |consumer| consumer.retention(zero)));
    assert!(refused(move |consumer| consumer.lease(zero)));
    assert!(refused(move |consumer| consumer.run_max(zero)));
    assert!(refused(move |consumer| consumer.back_off(BackOff::new(zero, zero))));
    assert!(refused(|consumer| Consumer::new(&consumer_hapax(&consumer), "")));
}

fn consumer_hapax(_consumer: &Consumer) -> Hapax {
    Hapax::builder(MemoryStore::new()).keeper(Keeper::SharedRuntime).build()
}
