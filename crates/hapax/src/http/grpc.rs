//! gRPC: status in trailers, refusals as trailers-only responses.
