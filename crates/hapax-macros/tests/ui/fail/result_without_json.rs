#[derive(serde::Serialize)]
struct Receipt(u32);

#[hapax::idempotent]
async fn charge(id: u32) -> Result<Receipt, String> {
    Ok(Receipt(id))
}

fn main() {}
