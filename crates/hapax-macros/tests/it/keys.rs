//! Keys and scopes: which calls are one operation.

use hapax::core::{Fingerprint, Lookup, State};
use hapax::{OnceError, idempotent};
use serde::Serialize;
use serde_json::json;

use crate::World;

#[derive(Clone, Serialize)]
struct Order {
    id: u32,
    items: (String, u32),
}

fn order(id: u32, amount: u32) -> Order {
    Order { id, items: ("book".to_owned(), amount) }
}

#[idempotent(key = "order:{order_id}", scope = "orders", engine = world.hapax, skip(world))]
async fn charge(world: World, order_id: u32, amount: u32) -> Result<u32, String> {
    let _ = amount;
    Ok(world.happen())
}

#[idempotent(engine = world.hapax, skip(world))]
async fn by_arguments(world: World, name: &str, amount: u32) -> u32 {
    let _ = (name, amount);
    world.happen()
}

#[idempotent(key = "{{{order.id}}}-{order.items.0}/{type}", engine = world.hapax, skip(world))]
async fn by_fields(world: World, order: &Order, r#type: &str) -> u32 {
    let _ = (order, r#type);
    world.happen()
}

#[tokio::test]
async fn a_key_runs_once_and_is_replayed() {
    let world = World::new();
    assert_eq!(charge(world.clone(), 1, 10).await.unwrap(), 1);
    assert_eq!(charge(world.clone(), 1, 10).await.unwrap(), 1);
    assert_eq!(charge(world.clone(), 2, 10).await.unwrap(), 2);
    assert_eq!(world.count(), 2);
}

#[tokio::test]
async fn the_same_key_with_other_arguments_is_a_mismatch() {
    let world = World::new();
    charge(world.clone(), 1, 10).await.unwrap();
    assert!(matches!(charge(world.clone(), 1, 11).await, Err(OnceError::Mismatch)));
    assert_eq!(world.count(), 1);
}

#[tokio::test]
async fn without_a_key_all_arguments_are_the_key() {
    let world = World::new();
    assert_eq!(by_arguments(world.clone(), "a", 1).await.unwrap(), 1);
    assert_eq!(by_arguments(world.clone(), "a", 1).await.unwrap(), 1);
    assert_eq!(by_arguments(world.clone(), "a", 2).await.unwrap(), 2);
    assert_eq!(by_arguments(world.clone(), "b", 1).await.unwrap(), 3);
}

#[tokio::test]
async fn the_key_of_all_arguments_is_the_digest_of_their_canonical_json() {
    let world = World::new();
    by_arguments(world.clone(), "a", 1).await.unwrap();
    let input = Fingerprint::builder().json("input", br#"{ "name": "a", "amount": 1 }"#).build();
    let key: String = input.digest().iter().map(|byte| format!("{byte:02x}")).collect();
    let scope = concat!(module_path!(), "::by_arguments");
    let found = world.hapax.get(scope, key).await.unwrap();
    assert!(matches!(found, Lookup::Found { record, .. } if record.state() == State::Completed));
}

#[tokio::test]
async fn a_key_names_fields_and_keeps_escaped_braces() {
    let world = World::new();
    by_fields(world.clone(), &order(7, 1), "gift").await.unwrap();
    let scope = concat!(module_path!(), "::by_fields");
    let found = world.hapax.get(scope, "{7}-book/gift").await.unwrap();
    assert!(matches!(found, Lookup::Found { .. }));
}

#[tokio::test]
async fn once_with_the_same_scope_key_and_input_reads_the_same_record() {
    let world = World::new();
    assert_eq!(charge(world.clone(), 1, 10).await.unwrap(), 1);
    let by_hand = |amount: u32| {
        let once = world.hapax.once("orders", "order:1").input(&json!({ "amount": amount, "order_id": 1 }));
        once.run(|_cx| async { Ok::<u32, String>(99) })
    };
    let done = by_hand(10).await.unwrap();
    assert_eq!((done.value, done.replayed), (1, true));
    assert!(matches!(by_hand(11).await, Err(OnceError::Mismatch)));
}

#[tokio::test]
async fn an_invalid_key_is_refused_and_nothing_runs() {
    #[idempotent(key = "{name}", engine = world.hapax, skip(world))]
    async fn named(world: World, name: &str) -> u32 {
        let _ = name;
        world.happen()
    }
    let world = World::new();
    assert!(matches!(named(world.clone(), "").await, Err(OnceError::Key(_))));
    assert!(matches!(named(world.clone(), "naïve").await, Err(OnceError::Key(_))));
    assert_eq!(world.count(), 0);
}

#[tokio::test]
async fn functions_of_one_name_in_two_modules_are_two_operations() {
    mod other {
        use crate::World;

        #[hapax::idempotent(engine = world.hapax, skip(world))]
        pub(super) async fn by_arguments(world: World, name: &str, amount: u32) -> u32 {
            let _ = (name, amount);
            world.happen()
        }
    }
    let world = World::new();
    assert_eq!(by_arguments(world.clone(), "a", 1).await.unwrap(), 1);
    assert_eq!(other::by_arguments(world.clone(), "a", 1).await.unwrap(), 2);
}

#[derive(Clone)]
struct Session {
    world: World,
    tenant: String,
    user: String,
}

impl Session {
    fn new(world: &World, tenant: &str, user: &str) -> Self {
        Self { world: world.clone(), tenant: tenant.to_owned(), user: user.to_owned() }
    }

    #[idempotent(key = "{self.tenant}:{self.user}:{order}", scope = "session.sell", engine = self.world.hapax)]
    async fn sell(&self, order: u32) -> String {
        self.world.happen();
        format!("{} / {} / {order}", self.tenant, self.user)
    }
}

#[idempotent(key = "{tenant}:{user}:{tenant}", engine = world.hapax, skip(world, tenant, user))]
async fn of_skipped(world: World, tenant: &str, user: &str) -> u32 {
    let _ = (tenant, user);
    world.happen()
}

#[tokio::test]
async fn receivers_whose_fields_join_to_one_key_are_a_mismatch() {
    let world = World::new();
    let sold = Session::new(&world, "acme", "x:y").sell(1).await.unwrap();
    assert_eq!(Session::new(&world, "acme", "x:y").sell(1).await.unwrap(), sold);
    let other = Session::new(&world, "acme:x", "y").sell(1).await;
    assert!(matches!(other, Err(OnceError::Mismatch)), "{other:?}");
    assert_eq!(world.count(), 1);
}

#[tokio::test]
async fn skipped_arguments_that_join_to_one_key_are_a_mismatch() {
    let world = World::new();
    assert_eq!(of_skipped(world.clone(), "a", "a:x:a").await.unwrap(), 1);
    assert_eq!(of_skipped(world.clone(), "a", "a:x:a").await.unwrap(), 1);
    assert!(matches!(of_skipped(world.clone(), "a:a", "x").await, Err(OnceError::Mismatch)));
    assert_eq!(world.count(), 1);
}

#[tokio::test]
async fn what_a_key_reads_of_the_receiver_is_a_member_of_the_input() {
    let world = World::new();
    let sold = Session::new(&world, "acme", "x").sell(1).await.unwrap();
    let input = json!({ "order": 1, "self.tenant": "acme", "self.user": "x" });
    let once = world.hapax.once("session.sell", "acme:x:1").input(&input);
    let done = once.run(|_cx| async { Ok::<_, String>(String::new()) }).await.unwrap();
    assert_eq!((done.value, done.replayed), (sold, true));
}
