use std::sync::Arc;
use std::time::Duration;

use hapax_core::{BoxFuture, StoreError, StoreErrorKind};

use super::Calls;
use crate::MemoryStore;

#[tokio::test]
async fn a_store_that_panics_before_it_has_a_future_to_give_has_not_answered() {
    let calls = Calls { store: Arc::new(MemoryStore::new()), timeout: Duration::from_secs(1) };
    let call = || -> BoxFuture<'static, Result<(), StoreError>> { panic!("a planned panic of a store") };
    for tries in [1, 2] {
        let answer = calls.insist("complete", calls.timeout, tries, call).await;
        assert_eq!(answer.map_err(|error| error.kind()), Err(StoreErrorKind::Unknown));
    }
}
