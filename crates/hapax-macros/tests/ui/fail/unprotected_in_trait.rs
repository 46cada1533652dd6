#[async_trait::async_trait]
trait Sell {
    async fn sell(&self, id: u32) -> Result<u32, String>;
}

#[derive(Clone)]
struct Shop;

#[async_trait::async_trait]
impl Sell for Shop {
    #[hapax::idempotent(scope = "sell", unprotected = "sell_now")]
    async fn sell(&self, id: u32) -> Result<u32, String> {
        Ok(id)
    }
}

fn main() {}
