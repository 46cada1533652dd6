#[hapax::idempotent(key = "{id}", scope = "a", key = "{id}")]
async fn charge(id: u32) -> u32 {
    id
}

fn main() {}
