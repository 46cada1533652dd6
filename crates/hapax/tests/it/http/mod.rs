//! The layer behind real sockets: what clients do to connections, and what a service and a store do to the layer.
//!
//! No test here waits for a fixed time. Handlers, connections and store calls report events, and tests wait for these.

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
