//! The unprotected form, and the context of an execution.

use hapax::{Context, Hapax, idempotent};

use crate::World;

/// Charges an order.
#[idempotent(key = "{id}", engine = world.hapax, skip(world))]
async fn charge(world: &World, id: u32, _note: &str) -> Result<u32, String> {
    if id == 0 {
        return Err("no order".to_owned());
    }
    Ok(world.happen())
}

#[idempotent(key = "{id}", engine = hapax, context = cx)]
async fn keyed(hapax: &Hapax, id: u32) -> String {
    format!("{} {}", cx.attempt(), cx.effect_key("charge").as_str())
}

#[idempotent(key = "{id}", engine = world.hapax, skip(world), unprotected = "refund_now")]
async fn refund(world: &World, id: u32) -> u32 {
    let _ = id;
    world.happen()
}

#[idempotent(key = "{id}", engine = world.hapax, skip(world), scope = "closed", unprotected = none)]
async fn closed(world: &World, id: u32) -> u32 {
    let _ = id;
    world.happen()
}

/// A module may have the name of a function without an unprotected form.
mod closed {
    pub(super) const ID: u32 = 1;
}

#[derive(Clone)]
struct Shop(World);

impl Shop {
    #[idempotent(key = "{id}", scope = "sell", engine = self.0.hapax, unprotected = "sell_now", context = cx)]
    async fn sell(&self, id: u32, (a, b): (u32, u32)) -> Result<u32, String> {
        let _ = (id, cx.attempt());
        Ok(a + b + self.0.happen())
    }

    #[idempotent(key = "{id}", scope = "open", engine = world.hapax, skip(world), unprotected = "Self::open_now")]
    async fn open(world: World, id: u32) -> u32 {
        let _ = id;
        world.happen()
    }
}

#[tokio::test]
async fn the_unprotected_form_runs_on_every_call() {
    let world = World::new();
    assert_eq!(charge(&world, 1, "x").await.unwrap(), 1);
    assert_eq!(charge::unprotected(&world, 1, "x").await, Ok(2));
    assert_eq!(charge::unprotected(&world, 1, "x").await, Ok(3));
    assert_eq!(charge::unprotected(&world, 0, "x").await, Err("no order".to_owned()));
    assert_eq!(charge(&world, 1, "x").await.unwrap(), 1);
}

#[tokio::test]
async fn the_unprotected_form_may_be_a_function_beside_it_or_none() {
    let world = World::new();
    assert_eq!((refund(&world, 1).await.unwrap(), refund_now(&world, 1).await), (1, 2));
    assert_eq!(closed(&world, closed::ID).await.unwrap(), 3);
    assert_eq!(closed(&world, closed::ID).await.unwrap(), 3);
}

#[tokio::test]
async fn methods_and_associated_functions_have_an_unprotected_form() {
    let shop = Shop(World::new());
    assert_eq!(shop.sell(1, (10, 20)).await.unwrap(), 31);
    let direct = {
        let shop = shop.clone();
        let once = shop.0.hapax.once("test", "1");
        once.run(move |cx| async move { shop.sell_now(cx, 1, (10, 20)).await }).await.unwrap().value
    };
    assert_eq!(direct, 32);
    assert_eq!(shop.sell(1, (10, 20)).await.unwrap(), 31);

    let world = shop.0;
    assert_eq!(Shop::open(world.clone(), 1).await.unwrap(), 3);
    assert_eq!(Shop::open(world.clone(), 1).await.unwrap(), 3);
    assert_eq!(Shop::open_now(world.clone(), 1).await, 4);
}

#[tokio::test]
async fn the_context_is_that_of_the_operation() {
    let hapax = World::new().hapax;
    let ran = keyed(&hapax, 1).await.unwrap();
    let expected = hapax
        .once(concat!(module_path!(), "::keyed"), "1")
        .input(&serde_json::json!({ "id": 1 }))
        .run(|_cx| async { Ok::<_, String>(String::new()) })
        .await
        .unwrap();
    assert_eq!((ran.clone(), true), (expected.value, expected.replayed));
    assert!(ran.starts_with("1 "));

    let engine = hapax.clone();
    let work = move |cx: Context| async move { Ok::<_, String>(keyed::unprotected(cx, &engine, 1).await) };
    let other = hapax.once("test", "1").run(work).await.unwrap().value;
    assert_ne!(other, ran);
}
