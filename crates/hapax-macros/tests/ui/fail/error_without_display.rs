struct PayError;

#[hapax::idempotent]
async fn charge(id: u32) -> Result<u32, PayError> {
    Ok(id)
}

fn main() {}
