//! Where the engine comes from, and the options of the operation.

use std::sync::{Arc, LazyLock};

use hapax::{GlobalAlreadySet, Hapax, MemoryStore, OnceError, idempotent};

use crate::World;

static SHARED: LazyLock<Hapax> = LazyLock::new(|| Hapax::new(MemoryStore::new()));

#[derive(Clone)]
struct AppState {
    hapax: Arc<Hapax>,
}

#[idempotent(key = "{id}", engine = SHARED)]
async fn by_static(id: u32) -> u32 {
    id
}

#[idempotent(key = "{id}", engine = state.hapax, skip(state))]
async fn by_field(state: &AppState, id: u32) -> u32 {
    id
}

#[idempotent(engine = hapax)]
async fn by_argument(hapax: Arc<Hapax>, id: u32) -> bool {
    hapax.policy() == hapax::Policy::default() && id > 0
}

#[idempotent(key = "{id}")]
async fn by_default(id: u32, answer: u32) -> u32 {
    answer
}

#[tokio::test]
async fn the_engine_is_a_static_a_field_or_an_argument() {
    assert_eq!(by_static(1).await.unwrap(), 1);
    let state = AppState { hapax: Arc::new(World::new().hapax) };
    assert_eq!(by_field(&state, 2).await.unwrap(), 2);
    assert!(by_argument(state.hapax.clone(), 1).await.unwrap());
    assert_eq!(state.hapax.store().stats().await.unwrap().completed, 2);
}

/// The only test of the process that registers a default.
#[tokio::test]
async fn without_an_engine_the_registered_default_is_used() {
    assert!(Hapax::global().is_none());
    let refused = by_default(1, 10).await;
    assert!(matches!(refused, Err(OnceError::NoGlobal)));
    assert!(refused.unwrap_err().to_string().contains("Hapax::set_global"));

    let world = World::new();
    assert_eq!(world.hapax.set_global(), Ok(()));
    assert_eq!(World::new().hapax.set_global(), Err(GlobalAlreadySet));
    assert_eq!(by_default(1, 10).await.unwrap(), 10);
    assert_eq!(by_default(1, 10).await.unwrap(), 10);
    assert!(matches!(by_default(1, 11).await, Err(OnceError::Mismatch)));
    assert_eq!(world.hapax.store().stats().await.unwrap().completed, 1);
}

#[tokio::test]
async fn the_crate_may_have_another_name() {
    mod renamed {
        pub(super) use hapax as once;
    }
    #[idempotent(crate = renamed::once, engine = engine)]
    async fn answer(engine: &Hapax, id: u32) -> u32 {
        id
    }
    assert_eq!(answer(&World::new().hapax, 1).await.unwrap(), 1);
}
