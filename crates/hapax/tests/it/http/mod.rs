//! The layer behind real sockets: what clients do to connections, and what a service and a store do to the layer.
//!
//! Nothing here waits for a length of time. Handlers, connections and store calls say what has happened, and tests
//! wait until it has.

mod authorise;
mod canary;
mod disconnect;
mod ending;
mod exchange;
mod expect;
mod extract;
mod limits;
mod order;
mod reasons;
mod replay;
mod request_body;
mod review_bounds;
mod review_limits;
mod review_nested;
mod review_passage;
mod review_store_failure;
mod scopes;
mod service;
mod store_failure;
mod streamed;
mod upgrade;
mod waiting;
mod wire;
