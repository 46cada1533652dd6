use std::rc::Rc;

#[hapax::idempotent]
async fn charge(id: u32) -> u32 {
    let shared = Rc::new(id);
    std::future::ready(()).await;
    *shared
}

fn main() {}
