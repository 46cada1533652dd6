#[hapax::idempotent(retenton = "24h")]
async fn near(id: u32) -> u32 {
    id
}

#[hapax::idempotent(database = "postgres")]
async fn far(id: u32) -> u32 {
    id
}

fn main() {}
