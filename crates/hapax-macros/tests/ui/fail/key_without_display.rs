#[derive(Clone, serde::Serialize)]
struct Order {
    id: u32,
}

#[hapax::idempotent(key = "order:{order}")]
async fn charge(order: Order) -> u32 {
    order.id
}

#[hapax::idempotent(key = "order:{order.number}")]
async fn refund(order: Order) -> u32 {
    order.id
}

fn main() {}
