struct Order<'a>(&'a str);

#[hapax::idempotent]
async fn optional(id: u32, note: Option<&str>) -> u32 {
    id
}

#[hapax::idempotent(skip(order))]
async fn named<'a>(id: u32, order: Order<'a>) -> u32 {
    id
}

#[hapax::idempotent]
async fn list(names: &[&str]) -> u32 {
    0
}

fn main() {}
