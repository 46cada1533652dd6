type Charged = Result<u32, String>;

#[hapax::idempotent]
async fn charge(id: u32) -> Charged {
    Ok(id)
}

fn main() {}
