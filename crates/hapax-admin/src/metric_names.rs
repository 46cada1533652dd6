//! Names of metrics that the listener writes or the console reads.

/// Gauge: 1 if the process can serve traffic, 0 while it drains or its store is unhealthy.
pub const READY: &str = "hapax_ready";

/// Histogram: seconds from the head of a request to the head of its response, by `outcome`; `passed` if the layer passed
/// the request through.
pub const REQUEST_SECONDS: &str = "hapax_request_seconds";

/// The `outcome` of a request that the layer passed through.
pub const PASSED: &str = "passed";
