//! What a key is unique within: principal, method, path, host.
