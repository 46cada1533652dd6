//! Compressed request bodies, decoded within limits.
