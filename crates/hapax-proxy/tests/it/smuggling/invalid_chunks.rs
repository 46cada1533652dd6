//! Chunked bodies that are refused. The tests of `hapax-cli` include this file.

/// A smuggled request. It must never reach an origin as a request of its own.
pub(crate) const HIDDEN: &str = "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n";

/// Chunked bodies with invalid framing. A part of the request may be sent; nothing after it.
pub(crate) const INVALID_CHUNKS: &[(&str, &str)] = &[
    ("no digit", "\r\n0\r\n\r\n"),
    ("a sign", "+3\r\nabc\r\n0\r\n\r\n"),
    ("a prefix", "0x3\r\nabc\r\n0\r\n\r\n"),
    ("a space before the size", " 3\r\nabc\r\n0\r\n\r\n"),
    ("a space after the size", "3 \r\nabc\r\n0\r\n\r\n"),
    ("a line feed alone after the size", "3\nabc\r\n0\r\n\r\n"),
    ("a line feed alone after the data", "3\r\nabc\n0\r\n\r\n"),
    ("no end of the data", "3\r\nabc0\r\n\r\n"),
    ("a size that overflows", "fffffffffffffffff\r\nabc\r\n0\r\n\r\n"),
    ("a line feed in an extension", "3;a\nb\r\nabc\r\n0\r\n\r\n"),
    ("NUL in an extension", "3;\0\r\nabc\r\n0\r\n\r\n"),
    ("a carriage return in an extension", "3;a\rb\r\nabc\r\n0\r\n\r\n"),
    ("a line feed alone at the end", "0\r\n\n"),
    ("a trailer that is none", "0\r\nX : y\r\n\r\n"),
    ("a folded trailer", "0\r\nX: y\r\n z\r\n\r\n"),
    ("a length among the trailers", "0\r\nContent-Length: 33\r\n\r\n"),
    ("a length by another spelling among the trailers", "0\r\ncontent_length: 33\r\n\r\n"),
    ("a coding among the trailers", "0\r\nX: y\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ("a host among the trailers", "0\r\nHOST: b\r\n\r\n"),
];
