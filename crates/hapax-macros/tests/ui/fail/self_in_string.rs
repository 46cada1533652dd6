#[derive(Clone)]
struct Shop;

impl Shop {
    #[hapax::idempotent(scope = "sell")]
    async fn sell(&self, id: u32) -> String {
        format!("{self}: {id}")
    }
}

fn main() {}
