//! Where a request's key comes from.
