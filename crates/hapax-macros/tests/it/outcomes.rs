//! Results and errors: what is pinned, what is released, and the types of the protected function.

use std::convert::Infallible;
use std::io;

use hapax::core::Reason;
use hapax::{Fail, OnceError, idempotent};

use crate::World;

#[idempotent(key = "{id}", engine = world.hapax, skip(world))]
async fn released(world: World, id: u32) -> Result<u32, String> {
    match world.happen() {
        1 => Err("busy".to_owned()),
        count => Ok(count),
    }
}

#[idempotent(key = "{id}", engine = world.hapax, skip(world), on_error = release)]
async fn released_by_name(world: World, id: u32) -> io::Result<u32> {
    match world.happen() {
        1 => Err(io::Error::other("busy"))?,
        count => Ok(count),
    }
}

#[idempotent(key = "{id}", engine = world.hapax, skip(world), on_error = pin)]
async fn pinned(world: World, id: u32) -> Result<u32, String> {
    world.happen();
    Err(format!("no such order: {id}"))
}

#[idempotent(key = "{id}", engine = world.hapax, skip(world))]
async fn by_fail(world: World, id: u32) -> Result<u32, Fail<String>> {
    match (world.happen(), id) {
        (1, 1) => Err("busy".to_owned())?,
        (_, 2) => Err(Fail::permanent_with("declined".to_owned(), 7)),
        (_, 3) => Err(Fail::Unknown("no answer".to_owned())),
        (count, _) => Ok(count),
    }
}

#[idempotent(key = "{id}", engine = world.hapax, skip(world))]
async fn unit(world: World, id: u32) {
    world.happen();
}

#[tokio::test]
async fn an_error_releases_the_key() {
    let world = World::new();
    assert!(matches!(released(world.clone(), 1).await, Err(OnceError::Failed(error)) if error == "busy"));
    assert_eq!(released(world.clone(), 1).await.unwrap(), 2);
    assert_eq!(released(world.clone(), 1).await.unwrap(), 2);
}

#[tokio::test]
async fn an_alias_of_result_releases_the_key_too() {
    let world = World::new();
    let failed: Result<u32, OnceError<io::Error>> = released_by_name(world.clone(), 1).await;
    assert!(matches!(failed, Err(OnceError::Failed(_))));
    assert_eq!(released_by_name(world.clone(), 1).await.unwrap(), 2);
}

#[tokio::test]
async fn an_error_is_pinned_if_the_option_says_so() {
    let world = World::new();
    assert!(matches!(pinned(world.clone(), 1).await, Err(OnceError::Failed(_))));
    let again = pinned(world.clone(), 1).await;
    assert!(matches!(again, Err(OnceError::PreviouslyFailed(error)) if error.message == "no such order: 1"));
    assert_eq!(world.count(), 1);
}

#[tokio::test]
async fn a_fail_states_how_the_record_ends() {
    let world = World::new();
    assert!(matches!(by_fail(world.clone(), 1).await, Err(OnceError::Failed(_))));
    assert_eq!(by_fail(world.clone(), 1).await.unwrap(), 2);

    assert!(matches!(by_fail(world.clone(), 2).await, Err(OnceError::Failed(_))));
    let again = by_fail(world.clone(), 2).await;
    assert!(matches!(again, Err(OnceError::PreviouslyFailed(error)) if error.data == Some(7.into())));

    assert!(matches!(by_fail(world.clone(), 3).await, Err(OnceError::Failed(_))));
    let again = by_fail(world.clone(), 3).await;
    assert!(matches!(again, Err(OnceError::Uncertain { reason: Reason::Declared, .. })));
    assert_eq!(world.count(), 4);
}

#[tokio::test]
async fn a_function_without_a_result_is_protected_too() {
    let world = World::new();
    let ran: Result<(), OnceError<Infallible>> = unit(world.clone(), 1).await;
    ran.unwrap();
    unit(world.clone(), 1).await.unwrap();
    assert_eq!(world.count(), 1);
}

#[tokio::test]
async fn map_err_keeps_the_signature() {
    #[derive(Debug, PartialEq)]
    enum PayError {
        Declined,
        NotRun(&'static str),
    }

    impl std::fmt::Display for PayError {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "{self:?}")
        }
    }

    impl From<OnceError<PayError>> for PayError {
        fn from(error: OnceError<PayError>) -> Self {
            match error {
                OnceError::Failed(error) => error,
                OnceError::Mismatch => Self::NotRun("mismatch"),
                _ => Self::NotRun("other"),
            }
        }
    }

    #[idempotent(key = "{id}", engine = world.hapax, skip(world), map_err = PayError::from)]
    async fn pay(world: World, id: u32, amount: u32) -> Result<u32, PayError> {
        if amount == 0 {
            return Err(PayError::Declined);
        }
        Ok(world.happen())
    }

    let world = World::new();
    let declined: Result<u32, PayError> = pay(world.clone(), 1, 0).await;
    assert_eq!(declined, Err(PayError::Declined));
    assert_eq!(pay(world.clone(), 1, 5).await, Ok(1));
    assert_eq!(pay(world.clone(), 1, 6).await, Err(PayError::NotRun("mismatch")));
}
