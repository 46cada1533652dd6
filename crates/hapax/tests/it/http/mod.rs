//! The layer behind real sockets: what clients do to connections, and what a service and a store do to the layer.
//!
//! No test here waits for a fixed time. Handlers, connections and store calls report events, and tests wait for these.

mod authorise;
mod canary;
mod disconnect;
mod duplicate_limits;
mod ending;
mod exchange;
mod expect;
mod extract;
mod head_bypass;
mod limits;
mod nested_layers;
mod order;
mod reasons;
mod replay;
mod request_body;
mod scopes;
mod service;
mod store_failure;
mod store_failure_pass;
mod streamed;
mod trait_bounds;
mod upgrade;
mod waiting;
mod wire;
