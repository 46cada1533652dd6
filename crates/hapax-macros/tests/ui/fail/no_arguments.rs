#[hapax::idempotent]
async fn none() -> u32 {
    0
}

#[hapax::idempotent(skip(id))]
async fn all_skipped(id: u32) -> u32 {
    id
}

#[derive(Clone)]
struct Shop(u32);

impl Shop {
    #[hapax::idempotent(scope = "open")]
    async fn open(&self) -> u32 {
        self.0
    }
}

fn main() {}
