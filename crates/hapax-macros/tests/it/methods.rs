//! Methods: inherent, of traits, and with `async_trait`.

use std::fmt::Display;
use std::sync::Arc;

use async_trait::async_trait;
use hapax::core::Lookup;
use hapax::{OnceError, idempotent};

use crate::World;

#[derive(Clone)]
struct Shop {
    world: World,
    tenant: String,
}

impl Shop {
    fn new(tenant: &str) -> Self {
        Self { world: World::new(), tenant: tenant.to_owned() }
    }

    #[idempotent(key = "{self.tenant}:{id}", scope = "shop.sell", engine = self.world.hapax)]
    async fn sell(&self, id: u32, names: &[String]) -> Result<String, String> {
        self::check(id)?;
        let count = self.world.happen();
        let text = format!("{} {}", self.tenant, names.join("+"));
        if text.is_empty() {
            return Err(format!("{}", self.tenant));
        }
        let shop = self;
        Ok(format!("{text} {count} {:?} {tenant}", self.tenant, tenant = shop.tenant))
    }

    #[idempotent(key = "{id}", scope = "shop.shared", engine = self.world.hapax)]
    async fn shared(self: Arc<Self>, id: u32) -> u32 {
        struct Inner(u32);
        impl Inner {
            fn get(&self) -> u32 {
                self.0
            }
        }
        Inner(id).get() + self.world.happen()
    }

    #[idempotent(key = "{id}", scope = "shop.owned", engine = self.world.hapax)]
    async fn owned(mut self, id: u32) -> String {
        self.tenant.push_str(&format!("{id}"));
        self.tenant
    }

    #[idempotent(key = "{id}", scope = "shop.of", engine = world.hapax, skip(world))]
    async fn of(world: World, id: u32) -> Result<u32, OnceError<String>> {
        let shop = Self { world, tenant: String::new() };
        Ok(shop.world.happen() + id)
    }

    #[idempotent(key = "{id}", scope = "shop.generic", engine = self.world.hapax, skip(made))]
    async fn generic<T: Display + Send + Sync + 'static>(&self, id: u32, made: T) -> String {
        self.world.happen();
        format!("{} {made}", self.tenant)
    }
}

fn check(id: u32) -> Result<(), String> {
    if id == 0 { Err("no id".to_owned()) } else { Ok(()) }
}

#[derive(Debug, PartialEq)]
enum SellError {
    Failed(String),
    Mismatch,
    Other,
}

impl Display for SellError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}

fn sell_error(error: OnceError<SellError>) -> SellError {
    match error {
        OnceError::Failed(error) => error,
        OnceError::Mismatch => SellError::Mismatch,
        _ => SellError::Other,
    }
}

trait Sell {
    fn sell_one(&self, id: u32, price: u32) -> impl Future<Output = Result<u32, SellError>> + Send;
}

impl Sell for Shop {
    #[idempotent(key = "{id}", scope = "sell_one", engine = self.world.hapax, map_err = sell_error)]
    async fn sell_one(&self, id: u32, price: u32) -> Result<u32, SellError> {
        if price == 0 {
            return Err(SellError::Failed("free".to_owned()));
        }
        Ok(self.world.happen())
    }
}

#[async_trait]
trait Ship: Send + Sync {
    async fn ship(&self, id: u32, to: &str, (width, height): (u32, u32)) -> Result<String, SellError>;
    async fn track(&self, id: u32) -> Result<u32, OnceError<String>>;
}

#[async_trait]
impl Ship for Shop {
    #[idempotent(key = "{self.tenant}:{id}", scope = "ship", engine = self.world.hapax, map_err = sell_error)]
    async fn ship(&self, id: u32, to: &str, (width, height): (u32, u32)) -> Result<String, SellError> {
        tokio::task::yield_now().await;
        if width == 0 {
            Err(SellError::Failed("flat".to_owned()))?;
        }
        Ok(format!("{} {to} {} {}", self.tenant, width * height, self.world.happen()))
    }

    #[idempotent(key = "{id}", scope = "track", engine = self.world.hapax)]
    async fn track(&self, id: u32) -> Result<u32, String> {
        Ok(self.world.happen())
    }
}

/// The attribute on the default method of the trait itself.
#[async_trait]
trait Count: Clone + Send + Sync + 'static {
    fn world(&self) -> &World;

    #[idempotent(key = "{id}", scope = "count", engine = self.world().hapax, context = cx, map_err = sell_error)]
    async fn count(&self, id: u32) -> Result<(u32, u32), SellError> {
        Ok((self.world().happen(), cx.attempt()))
    }
}

impl Count for Shop {
    fn world(&self) -> &World {
        &self.world
    }
}

#[tokio::test]
async fn a_method_runs_once_for_a_key_of_its_receiver() {
    let shop = Shop::new("a");
    let names = ["x".to_owned(), "y".to_owned()];
    let sold = shop.sell(1, &names).await.unwrap();
    assert_eq!(sold, "a x+y 1 \"a\" a");
    assert_eq!(shop.sell(1, &names).await.unwrap(), sold);
    assert!(matches!(shop.sell(1, &names[..1]).await, Err(OnceError::Mismatch)));
    assert!(matches!(shop.sell(0, &names).await, Err(OnceError::Failed(_))));
    let found = shop.world.hapax.get("shop.sell", "a:1").await.unwrap();
    assert!(matches!(found, Lookup::Found { .. }));
}

#[tokio::test]
async fn other_receivers_work() {
    let shop = Shop::new("a");
    assert_eq!(Arc::new(shop.clone()).shared(5).await.unwrap(), 6);
    assert_eq!(Arc::new(shop.clone()).shared(5).await.unwrap(), 6);
    assert_eq!(shop.clone().owned(7).await.unwrap(), "a7");
    assert_eq!(Shop::of(shop.world.clone(), 1).await.unwrap(), 3);
    assert_eq!(Shop::of(shop.world.clone(), 1).await.unwrap(), 3);
    assert_eq!(shop.generic(1, "g").await.unwrap(), "a g");
}

#[tokio::test]
async fn a_method_of_a_trait_keeps_its_signature() {
    async fn sell(seller: &impl Sell, price: u32) -> Result<u32, SellError> {
        seller.sell_one(1, price).await
    }
    let shop = Shop::new("a");
    assert_eq!(sell(&shop, 0).await, Err(SellError::Failed("free".to_owned())));
    assert_eq!(sell(&shop, 5).await, Ok(1));
    assert_eq!(sell(&shop, 5).await, Ok(1));
    assert_eq!(sell(&shop, 6).await, Err(SellError::Mismatch));
}

#[tokio::test]
async fn a_method_of_async_trait_runs_once() {
    let shop = Shop::new("a");
    let ship: &dyn Ship = &shop;
    let to = "here".to_owned();
    assert_eq!(ship.ship(1, &to, (0, 3)).await, Err(SellError::Failed("flat".to_owned())));
    assert_eq!(ship.ship(1, &to, (2, 3)).await.unwrap(), "a here 6 1");
    assert_eq!(ship.ship(1, &to, (2, 3)).await.unwrap(), "a here 6 1");
    assert_eq!(ship.ship(1, "there", (2, 3)).await, Err(SellError::Mismatch));
    assert_eq!(ship.track(1).await.unwrap(), 2);
    assert_eq!(ship.track(1).await.unwrap(), 2);
}

#[tokio::test]
async fn a_default_method_of_async_trait_runs_once() {
    let shop = Shop::new("a");
    assert_eq!(shop.count(1).await, Ok((1, 1)));
    assert_eq!(shop.count(1).await, Ok((1, 1)));
    assert_eq!(shop.world.count(), 1);
}
