#[derive(Clone)]
struct Shop {
    sold: u32,
}

impl Shop {
    #[hapax::idempotent(scope = "sell")]
    async fn sell(&mut self, id: u32) -> u32 {
        self.sold += id;
        self.sold
    }
}

fn main() {}
