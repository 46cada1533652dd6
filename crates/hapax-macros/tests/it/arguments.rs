//! Arguments of all kinds: borrowed, generic, destructured, skipped.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Display;

use hapax::core::Lookup;
use hapax::{Hapax, OnceError, idempotent};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::World;

#[derive(Clone, Serialize)]
struct Order {
    id: u32,
    note: String,
}

#[idempotent(key = "{id}", engine = hapax)]
async fn borrowed<'a>(
    hapax: &Hapax,
    id: &'a str,
    parts: &'a [u32],
    order: &Order,
    note: Cow<'_, str>,
    kind: &'static str,
) -> String
where
    'a: 'a,
{
    tokio::task::yield_now().await;
    format!("{id} {parts:?} {} {} {note} {kind}", order.id, order.note)
}

#[idempotent(key = "{id}", engine = hapax)]
async fn generic<T, const N: usize>(hapax: &Hapax, id: u32, mut values: [T; N], most: &T) -> Result<T, String>
where
    T: PartialOrd + Clone + Default + Serialize + DeserializeOwned + Send + Sync + 'static,
    [T; N]: Serialize,
{
    values.sort_by(|a, b| a.partial_cmp(b).unwrap());
    let found = values.iter().rev().find(|value| *value <= most).ok_or("all are larger")?;
    Ok(found.clone())
}

#[idempotent(key = "{id}", engine = hapax)]
async fn sized<const N: usize>(hapax: &Hapax, id: u32) -> usize {
    N + id as usize
}

#[idempotent(key = "{id}", engine = hapax)]
async fn opaque(
    hapax: &Hapax,
    id: impl Display + Serialize + Send + 'static,
    name: &(impl Display + Serialize + Clone + Send + Sync + 'static),
) -> String {
    format!("{id} {name}")
}

#[idempotent(engine = hapax)]
async fn destructured(hapax: &Hapax, (a, b): (u32, u32), Order { id, .. }: Order, _: bool) -> u32 {
    a + b + id
}

#[idempotent(key = "{id}", engine = world.hapax, skip(world, trace))]
async fn skipping(world: &World, id: u32, trace: impl Fn(&str) -> usize + Send + 'static) -> usize {
    world.happen();
    trace("abc")
}

#[tokio::test]
async fn a_const_parameter_is_part_of_the_input() {
    let hapax = World::new().hapax;
    assert_eq!(sized::<2>(&hapax, 1).await.unwrap(), 3);
    assert_eq!(sized::<2>(&hapax, 1).await.unwrap(), 3);
    assert!(matches!(sized::<3>(&hapax, 1).await, Err(OnceError::Mismatch)));
}

#[tokio::test]
async fn borrowed_arguments_are_cloned_for_the_execution() {
    let hapax = World::new().hapax;
    let (id, parts) = ("a-1".to_owned(), vec![1, 2]);
    let order = Order { id: 3, note: "n".to_owned() };
    let ran = borrowed(&hapax, &id, &parts, &order, Cow::Borrowed("cow"), "static").await.unwrap();
    assert_eq!(ran, "a-1 [1, 2] 3 n cow static");
}

#[tokio::test]
async fn generic_functions_keep_their_parameters() {
    let hapax = World::new().hapax;
    assert_eq!(generic(&hapax, 1, [5, 3, 9], &6).await.unwrap(), 5);
    assert_eq!(generic(&hapax, 1, [5, 3, 9], &6).await.unwrap(), 5);
    assert!(matches!(generic(&hapax, 1, [5, 3, 8], &6).await, Err(OnceError::Mismatch)));
    assert!(
        matches!(generic(&hapax, 2, [5], &1).await, Err(OnceError::Failed(error)) if error == "all are larger")
    );
}

#[tokio::test]
async fn arguments_of_opaque_types_work() {
    let hapax = World::new().hapax;
    assert_eq!(opaque(&hapax, 1, &"x".to_owned()).await.unwrap(), "1 x");
    assert!(matches!(opaque(&hapax, 1, &"y".to_owned()).await, Err(OnceError::Mismatch)));
}

#[tokio::test]
async fn patterns_are_arguments_and_count() {
    let hapax = World::new().hapax;
    let order = || Order { id: 1, note: String::new() };
    assert_eq!(destructured(&hapax, (1, 2), order(), true).await.unwrap(), 4);
    assert_eq!(destructured(&hapax, (1, 3), order(), true).await.unwrap(), 5);
}

#[tokio::test]
async fn skipped_arguments_do_not_count_and_need_no_json() {
    let world = World::new();
    assert_eq!(skipping(&world, 1, str::len).await.unwrap(), 3);
    assert_eq!(skipping(&world, 1, |_| 99).await.unwrap(), 3);
    assert_eq!(world.count(), 1);
}

#[tokio::test]
async fn maps_in_another_order_are_the_same_argument() {
    #[idempotent(engine = hapax)]
    async fn total(hapax: &Hapax, prices: HashMap<String, u32>) -> u32 {
        prices.values().sum()
    }
    let hapax = World::new().hapax;
    let prices = |names: [&str; 3]| names.into_iter().map(|name| (name.to_owned(), 1)).collect();
    total(&hapax, prices(["a", "b", "c"])).await.unwrap();
    let scope = concat!(module_path!(), "::total");
    total(&hapax, prices(["c", "a", "b"])).await.unwrap();
    let stats = hapax.store().stats().await.unwrap();
    assert_eq!(stats.completed, 1, "{scope}");
    assert!(matches!(hapax.get(scope, "other").await.unwrap(), Lookup::Absent));
}

#[tokio::test]
async fn an_argument_without_a_json_form_is_refused_and_nothing_runs() {
    #[idempotent(engine = world.hapax, skip(world))]
    async fn by_map(world: World, prices: HashMap<(u32, u32), u32>) -> u32 {
        let _ = prices;
        world.happen()
    }
    let world = World::new();
    let prices = HashMap::from([((1, 2), 3)]);
    assert!(matches!(by_map(world.clone(), prices).await, Err(OnceError::Input(_))));
    assert_eq!(world.count(), 0);
}
