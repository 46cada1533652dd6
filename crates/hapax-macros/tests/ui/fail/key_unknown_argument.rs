#[hapax::idempotent(key = "order:{order}")]
async fn charge(order_id: u32, amount: u32) -> u32 {
    order_id
}

#[hapax::idempotent(key = "{self.tenant}:{order_id}")]
async fn free(order_id: u32) -> u32 {
    order_id
}

fn main() {}
