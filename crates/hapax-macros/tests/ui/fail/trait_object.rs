trait Network: Send + Sync {}

#[hapax::idempotent(skip(network))]
async fn charge(id: u32, network: &dyn Network) -> u32 {
    id
}

fn main() {}
