//! Methods of types with parameters, and of traits.
#![deny(warnings)]

use std::marker::PhantomData;
use std::sync::Arc;

use hapax::OnceError;

struct Shop<T> {
    tenant: String,
    of: PhantomData<T>,
}

impl<T: Send + Sync + 'static> Shop<T> {
    #[hapax::idempotent(key = "{self.tenant}:{id}", scope = "sell", unprotected = "sell_now")]
    async fn sell(self: &Arc<Self>, id: u32) -> Result<String, String> {
        if id == 0 {
            return Err("no id")?;
        }
        Ok(self.tenant.clone())
    }
}

#[async_trait::async_trait]
trait Ship {
    async fn ship(&self, id: &str, amount: u32) -> Result<String, OnceError<String>>;
}

#[async_trait::async_trait]
impl<T: Send + Sync + 'static> Ship for Arc<Shop<T>> {
    #[hapax::idempotent(key = "{id}", scope = "ship")]
    async fn ship(&self, id: &str, amount: u32) -> Result<String, String> {
        let _ = amount;
        Ok(self.tenant.clone())
    }
}

fn main() {
    let shop = Arc::new(Shop { tenant: String::new(), of: PhantomData::<u8> });
    drop((shop.sell(1), shop.sell_now(1), shop.ship("1", 1)));
}
