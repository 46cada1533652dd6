#[hapax::idempotent(skip(network))]
async fn charge(id: u32, net: u32) -> u32 {
    id
}

fn main() {}
