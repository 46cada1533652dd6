use std::future::Future;
use std::pin::Pin;

#[hapax::idempotent(scope = "boxed")]
fn boxed(id: u32) -> Pin<Box<dyn Future<Output = u32> + Send>> {
    println!("{id}");
    Box::pin(async move { id })
}

fn main() {}
