//! Records as bytes.
