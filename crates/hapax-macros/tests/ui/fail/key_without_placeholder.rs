#[hapax::idempotent(key = "order")]
async fn charge(order_id: u32) -> u32 {
    order_id
}

#[hapax::idempotent(key = "{{order_id}}")]
async fn escaped(order_id: u32) -> u32 {
    order_id
}

fn main() {}
