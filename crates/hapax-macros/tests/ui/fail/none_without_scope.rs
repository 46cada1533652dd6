struct Shop;

impl Shop {
    #[hapax::idempotent(unprotected = none)]
    async fn open(_id: u32) -> u32 {
        0
    }
}

fn main() {}
