//! Every option at once.
#![deny(warnings)]

mod engine {
    pub use hapax as once;
}

use engine::once::{Hapax, OnceError};

fn mapped(error: OnceError<String>) -> String {
    error.to_string()
}

#[engine::once::idempotent(
    key = "{id}",
    scope = "charge",
    retention = "7d",
    lease = "30s",
    wait = "250ms",
    deadline = "1h 30m",
    on_error = pin,
    on_lapse = uncertain,
    engine = hapax,
    context = cx,
    skip(note),
    map_err = mapped,
    unprotected = "charge_now",
    crate = engine::once,
)]
async fn charge(hapax: &Hapax, id: u32, note: &str) -> Result<String, String> {
    Ok(format!("{note} {}", cx.attempt()))
}

fn main() {
    let hapax = Hapax::new(engine::once::MemoryStore::new());
    drop(charge(&hapax, 1, ""));
    let _ = charge_now;
}
