use hapax::{Hapax, idempotent};

#[idempotent(key = "{id}", engine = hapax)]
async fn load<T: Default + serde::Serialize + serde::de::DeserializeOwned + Send + 'static>(
    hapax: &Hapax,
    id: u32,
) -> Option<T> {
    let _ = (hapax, id);
    Some(T::default())
}

fn main() {}
