//! Content-Digest and Repr-Digest: a body that is not what its sender hashed is refused.
