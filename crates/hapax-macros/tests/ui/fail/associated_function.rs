struct Shop;

impl Shop {
    #[hapax::idempotent(scope = "open")]
    async fn open(id: u32) -> u32 {
        id
    }
}

fn main() {}
