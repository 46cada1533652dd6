#[derive(Clone)]
struct AppState {
    hapax: String,
}

#[hapax::idempotent(engine = state.hapax, skip(state))]
async fn charge(state: &AppState, id: u32) -> u32 {
    id
}

fn main() {}
