#[hapax::idempotent]
async fn charge(id: u32, log: &mut Vec<String>) -> u32 {
    log.push(id.to_string());
    id
}

fn main() {}
