#[derive(serde::Serialize)]
struct Order {
    id: u32,
}

#[hapax::idempotent(key = "{order.id}")]
async fn charge(order: &Order) -> u32 {
    order.id
}

fn main() {}
