#[hapax::idempotent(key)]
async fn without_value(id: u32) -> u32 {
    id
}

#[hapax::idempotent(retention = 24)]
async fn number(id: u32) -> u32 {
    id
}

#[hapax::idempotent(lease = "30 seconds")]
async fn words(id: u32) -> u32 {
    id
}

#[hapax::idempotent(on_error = retry)]
async fn on_error(id: u32) -> Result<u32, String> {
    Ok(id)
}

#[hapax::idempotent(on_lapse = "rerun")]
async fn on_lapse(id: u32) -> u32 {
    id
}

#[hapax::idempotent(skip = id)]
async fn skip(id: u32) -> u32 {
    id
}

#[hapax::idempotent(unprotected = "Shop::sell_now")]
async fn unprotected(id: u32) -> u32 {
    id
}

fn main() {}
