#[derive(Clone)]
struct Shop;

impl Shop {
    #[hapax::idempotent]
    async fn sell(&self, id: u32) -> u32 {
        id
    }

    #[hapax::idempotent]
    async fn make(id: u32) -> Self {
        Self
    }
}

#[hapax::idempotent(scope = " ")]
async fn blank(id: u32) -> u32 {
    id
}

fn main() {}
