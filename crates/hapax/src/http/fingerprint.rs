//! What makes two HTTP requests the same request.
