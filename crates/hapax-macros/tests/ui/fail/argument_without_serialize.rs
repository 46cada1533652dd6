struct Card(String);

#[hapax::idempotent]
async fn charge(id: u32, card: Card) -> u32 {
    id
}

fn main() {}
