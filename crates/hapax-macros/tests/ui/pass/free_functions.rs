//! Visibility, names and parameters of free functions.
#![deny(warnings)]

use hapax::Hapax;

mod orders {
    /// Charges.
    #[hapax::idempotent(key = "{id}")]
    pub(crate) async fn charge(id: u32) -> Result<u32, std::io::Error> {
        Ok(id)
    }

    #[hapax::idempotent]
    pub(super) async fn r#match(r#type: String) -> String {
        r#type
    }
}

#[hapax::idempotent(key = "{id}", engine = hapax)]
async fn generic<T, const N: usize>(hapax: &Hapax, id: &str, values: [T; N]) -> Vec<T>
where
    T: serde::Serialize + serde::de::DeserializeOwned + Send + 'static,
    [T; N]: serde::Serialize,
{
    values.into_iter().collect()
}

fn main() {
    drop((orders::charge(1), orders::charge::unprotected(1), orders::r#match(String::new())));
    drop(orders::r#match::unprotected(String::new()));
    let hapax = Hapax::new(hapax::MemoryStore::new());
    drop((generic(&hapax, "", [1]), generic::unprotected(&hapax, "", [1])));
}
