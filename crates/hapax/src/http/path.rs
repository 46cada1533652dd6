//! Which paths a route covers.
