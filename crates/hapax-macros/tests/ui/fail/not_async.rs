#[hapax::idempotent]
fn charge(id: u32) -> u32 {
    id
}

fn main() {}
