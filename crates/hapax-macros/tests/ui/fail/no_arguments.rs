#[hapax::idempotent]
async fn none() -> u32 {
    0
}

#[hapax::idempotent(skip(id))]
async fn all_skipped(id: u32) -> u32 {
    id
}

fn main() {}
