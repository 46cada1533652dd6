#[hapax::idempotent]
async fn charge(id: u32, #[cfg_attr(all(), allow(unused))] amount: u32) -> u32 {
    id
}

fn main() {}
