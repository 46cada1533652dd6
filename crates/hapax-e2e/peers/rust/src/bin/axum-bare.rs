//! The service without idempotency.

fn main() {
    hapax_peers::serve(async |orders| orders);
}
