//! What stands on a function stays on it.

#![deny(missing_docs, dead_code, unreachable_pub, reason = "the generated items need no exception")]

use hapax::{Hapax, idempotent};

use crate::World;

#[idempotent(key = "{id}", engine = hapax)]
#[cfg(any())]
async fn absent(hapax: &Hapax, id: NoSuchType) -> u32 {
    id
}

#[cfg(not(any()))]
#[idempotent(key = "{id}", engine = hapax)]
#[must_use = "the number counts"]
#[expect(clippy::too_many_arguments, reason = "a test of the attribute")]
#[tracing::instrument(skip(hapax))]
pub(crate) async fn present(
    hapax: &Hapax,
    id: u32,
    a: u32,
    b: u32,
    c: u32,
    d: u32,
    e: u32,
    f: u32,
) -> Result<u32, String> {
    Ok(id + a + b + c + d + e + f)
}

#[tracing::instrument(skip(hapax))]
#[idempotent(key = "{id}", engine = hapax)]
async fn instrumented_inside(hapax: &Hapax, id: u32) -> Result<u32, String> {
    Ok(id)
}

#[idempotent(key = "{id}", engine = hapax)]
async fn inner_attribute(hapax: &Hapax, id: u32) -> Result<u32, String> {
    #![allow(clippy::needless_return, reason = "a test of the attribute")]
    return Ok(id);
}

#[tokio::test]
async fn attributes_stay_on_the_function() {
    let hapax = World::new().hapax;
    assert_eq!(present(&hapax, 1, 1, 1, 1, 1, 1, 1).await.unwrap(), 7);
    assert_eq!(inner_attribute(&hapax, 1).await.unwrap(), 1);
    assert_eq!(instrumented_inside(&hapax, 1).await.unwrap(), 1);
}
