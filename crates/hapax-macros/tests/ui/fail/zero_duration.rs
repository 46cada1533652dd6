#[hapax::idempotent(retention = "0s")]
async fn retention(id: u32) -> u32 {
    id
}

#[hapax::idempotent(lease = "0s")]
async fn lease(id: u32) -> u32 {
    id
}

#[hapax::idempotent(deadline = "0s")]
async fn deadline(id: u32) -> u32 {
    id
}

#[hapax::idempotent(wait = "0s")]
async fn wait(id: u32) -> u32 {
    id
}

fn main() {}
