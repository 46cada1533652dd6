#[hapax::idempotent(key = "order:{order_id:08}")]
async fn format(order_id: u32) -> u32 {
    order_id
}

#[hapax::idempotent(key = "order:{order_id")]
async fn open(order_id: u32) -> u32 {
    order_id
}

#[hapax::idempotent(key = "order:order_id}")]
async fn close(order_id: u32) -> u32 {
    order_id
}

#[hapax::idempotent(key = "order:{}")]
async fn empty(order_id: u32) -> u32 {
    order_id
}

#[hapax::idempotent(key = "order:{order_id.to_string()}")]
async fn call(order_id: u32) -> u32 {
    order_id
}

#[hapax::idempotent(key = order_id)]
async fn bare(order_id: u32) -> u32 {
    order_id
}

fn main() {}
