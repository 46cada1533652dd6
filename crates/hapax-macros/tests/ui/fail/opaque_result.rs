#[hapax::idempotent]
async fn name(id: u32) -> impl std::fmt::Display {
    id
}

fn main() {}
