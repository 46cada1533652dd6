struct Shop {
    tenant: String,
}

impl Shop {
    #[hapax::idempotent(key = "{self.tenant}:{id}", scope = "sell")]
    async fn sell(&self, id: u32) -> String {
        self.tenant.clone()
    }
}

fn main() {}
