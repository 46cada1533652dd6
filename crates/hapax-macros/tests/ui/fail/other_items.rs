#[hapax::idempotent]
struct Order(u32);

trait Shop {
    #[hapax::idempotent(scope = "sell")]
    async fn sell(&self, id: u32) -> u32;
}

fn main() {}
