use hapax::Fail;

#[hapax::idempotent(on_error = pin)]
async fn plain(id: u32) -> u32 {
    id
}

#[hapax::idempotent(on_error = pin)]
async fn fail(id: u32) -> Result<u32, Fail<String>> {
    Ok(id)
}

#[hapax::idempotent(map_err = String::from)]
async fn mapped(id: u32) -> u32 {
    id
}

fn main() {}
