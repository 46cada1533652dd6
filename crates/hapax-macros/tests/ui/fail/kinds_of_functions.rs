#[hapax::idempotent]
const fn constant(id: u32) -> u32 {
    id
}

#[hapax::idempotent]
async unsafe fn dangerous(id: u32) -> u32 {
    id
}

fn main() {}
