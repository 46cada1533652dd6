//! Unusual requests that are accepted. The tests of `hapax-cli` send them to other servers as well.

/// Closes the connection.
pub(crate) const LAST: &str = "GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// Each with its name and its number of requests.
pub(crate) const ACCEPTED: &[(&str, &str, usize)] = &[
    ("nothing odd", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 1),
    ("one empty line before", "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 1),
    ("a body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", 1),
    ("zeros before a length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 003\r\n\r\nabc", 1),
    (
        "a body that looks like a request",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 15\r\n\r\nGET / X\r\nY: z\r\n",
        1,
    ),
    ("chunks", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 1),
    (
        "chunks in capitals",
        "POST / HTTP/1.1\r\nHost: a\r\nTRANSFER-ENCODING: Chunked\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n",
        1,
    ),
    (
        "chunks with an extension",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\n\r\n",
        1,
    ),
    (
        "chunks with trailers",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n",
        1,
    ),
    (
        "chunks after a tab",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\tchunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        1,
    ),
    (
        "chunks before spaces and tabs",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked \t \r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        1,
    ),
    ("a length after a tab", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\t3 \r\n\r\nabc", 1),
    (
        "an expectation",
        "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
        1,
    ),
    (
        "an expectation of something else",
        "POST / HTTP/1.1\r\nHost: a\r\nExpect: y 100-continue\r\nContent-Length: 3\r\n\r\nabc",
        1,
    ),
    (
        "two expectations",
        "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nExpect: x\r\nContent-Length: 3\r\n\r\nabc",
        1,
    ),
    (
        "an expectation by a GET",
        "GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
        1,
    ),
    ("an expectation without a body", "GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n", 1),
    ("a body of a GET", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", 1),
    ("absolute form", "GET http://A/x?y HTTP/1.1\r\nHost: a\r\n\r\n", 1),
    ("a star", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 1),
    ("fields named by Connection", "GET / HTTP/1.1\r\nHost: a\r\nConnection: x-a, host\r\nX-A: b\r\n\r\n", 1),
    (
        "an offer of HTTP/2",
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
        1,
    ),
    (
        "three at once",
        "GET / HTTP/1.1\r\nHost: a\r\n\r\nPOST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nxGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        3,
    ),
];
