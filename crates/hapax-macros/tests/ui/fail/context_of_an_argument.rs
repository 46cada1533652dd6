#[hapax::idempotent(context = cx)]
async fn charge(id: u32, cx: u32) -> u32 {
    id
}

fn main() {}
