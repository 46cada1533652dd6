#[hapax::idempotent]
async fn name(id: &str) -> Result<&str, String> {
    Ok(id)
}

fn main() {}
