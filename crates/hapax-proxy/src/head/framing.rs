//! One whole head: whether everybody reads it alike, and what body it announces.

use memchr::memchr;

/// Why a head is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::proxy) enum Fault {
    /// A line ends with a line feed alone.
    BareLineFeed,
    /// The first line is no request line.
    RequestLine,
    /// The target is none that is served here, or names another host than `Host`.
    Target,
    /// A name is none: there may be a space before its colon, or the line goes on from the one before.
    FieldName,
    /// A value has control characters.
    FieldValue,
    /// `Content-Length` is repeated, or no plain number.
    ContentLength,
    /// `Transfer-Encoding` is repeated, or anything but `chunked`, or not of this version.
    TransferEncoding,
    /// Both lengths are there.
    TwoLengths,
    /// `Host` is missing, repeated or none.
    Host,
    /// Another protocol is asked for together with a body.
    UpgradeWithBody,
    /// Bytes of the other protocol came before it was agreed on.
    EarlyUpgrade,
    /// The head is larger than allowed.
    TooLarge,
    /// The chunks that follow it cannot be followed.
    Chunks,
}

/// Asks for a tunnel. It is let through to be refused in words.
const CONNECT: &[u8] = b"CONNECT";

/// What follows a head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Body {
    None,
    Length(u64),
    Chunked,
    /// Nothing, until the other protocol is agreed on. A tunnel never is.
    Upgrade,
}

/// What was found in a head.
#[derive(Default)]
struct Found<'a> {
    length: Option<u64>,
    is_chunked: bool,
    host: Option<&'a [u8]>,
    connection_upgrades: bool,
    protocol: bool,
}

/// Judges a head that ends with its empty line.
pub(super) fn judge(head: &[u8]) -> Result<Body, Fault> {
    let head = head.strip_prefix(b"\r\n").unwrap_or(head);
    let mut lines = Lines(head);
    let line = lines.next().ok_or(Fault::RequestLine)?;
    let (method, target, is_old) = request_line(line)?;
    let mut found = Found::default();
    for line in lines {
        if !line.is_empty() {
            field(line, &mut found)?;
        }
    }
    if found.is_chunked && is_old {
        return Err(Fault::TransferEncoding);
    }
    if found.host.is_none() && !is_old {
        return Err(Fault::Host);
    }
    check_target(method, target, found.host)?;
    let is_upgrade = method == CONNECT || (found.connection_upgrades && found.protocol && !is_old);
    match (found.length, found.is_chunked) {
        (Some(_), true) => Err(Fault::TwoLengths),
        (Some(1..), _) | (_, true) if is_upgrade => Err(Fault::UpgradeWithBody),
        (_, false) if is_upgrade => Ok(Body::Upgrade),
        (Some(length), false) => Ok(Body::Length(length)),
        (None, true) => Ok(Body::Chunked),
        (None, false) => Ok(Body::None),
    }
}

/// Lines without their ends. That each ends with CR and LF was seen when the end of the head was looked for.
struct Lines<'a>(&'a [u8]);

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let end = memchr(b'\n', self.0)?;
        let line = self.0[..end].strip_suffix(b"\r").unwrap_or(&self.0[..end]);
        self.0 = &self.0[end + 1..];
        Some(line)
    }
}

/// Method, target, and whether it is HTTP/1.0.
fn request_line(line: &[u8]) -> Result<(&[u8], &[u8], bool), Fault> {
    let mut parts = line.split(|byte| *byte == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(Fault::RequestLine);
    };
    let is_old = match version {
        b"HTTP/1.1" => false,
        b"HTTP/1.0" => true,
        _ => return Err(Fault::RequestLine),
    };
    if method.is_empty() || !method.iter().all(|byte| is_token(*byte)) {
        return Err(Fault::RequestLine);
    }
    if target.is_empty() || target.iter().any(|byte| !byte.is_ascii_graphic() || *byte == b'#') {
        return Err(Fault::Target);
    }
    Ok((method, target, is_old))
}

/// Whether the target is of a form that is served here, and of the host that the head names.
fn check_target(method: &[u8], target: &[u8], host: Option<&[u8]>) -> Result<(), Fault> {
    if method == CONNECT {
        return if is_host(target) { Ok(()) } else { Err(Fault::Target) };
    }
    if target[0] == b'/' || (target == b"*" && method == b"OPTIONS") {
        return Ok(());
    }
    let rest = strip_scheme(target).ok_or(Fault::Target)?;
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    let authority = &rest[..end];
    match host {
        Some(host) if host.eq_ignore_ascii_case(authority) => Ok(()),
        None if is_host(authority) => Ok(()),
        _ => Err(Fault::Target),
    }
}

fn strip_scheme(target: &[u8]) -> Option<&[u8]> {
    [b"http://".as_slice(), b"https://"].into_iter().find_map(|scheme| {
        let (start, rest) = target.split_at_checked(scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then_some(rest)
    })
}

fn field<'a>(line: &'a [u8], found: &mut Found<'a>) -> Result<(), Fault> {
    let (name, value) = split_field(line)?;
    // The lengths of the names that matter; the comparison is for those alone.
    match name.len() {
        4 if is_named(name, b"host") => {
            if found.host.is_some() || !is_host(value) {
                return Err(Fault::Host);
            }
            found.host = Some(value);
        }
        7 if is_named(name, b"upgrade") => found.protocol |= has_token(value, is_other_protocol),
        10 if is_named(name, b"connection") => {
            found.connection_upgrades |= has_token(value, |token| token.eq_ignore_ascii_case(b"upgrade"));
        }
        14 if is_named(name, b"content-length") => {
            let length = plain_number(value).filter(|_| found.length.is_none() && is_exact(name));
            found.length = Some(length.ok_or(Fault::ContentLength)?);
        }
        17 if is_named(name, b"transfer-encoding") => {
            if found.is_chunked || !is_exact(name) || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(Fault::TransferEncoding);
            }
            found.is_chunked = true;
        }
        _ => {}
    }
    Ok(())
}

/// Whether this field says how long a request is or whom it is for.
pub(super) fn is_of_framing(name: &[u8]) -> bool {
    [b"host".as_slice(), b"content-length", b"transfer-encoding"]
        .iter()
        .any(|wanted| name.len() == wanted.len() && is_named(name, wanted))
}

/// Name and value of a field line.
pub(super) fn split_field(line: &[u8]) -> Result<(&[u8], &[u8]), Fault> {
    let colon = line.iter().position(|byte| !is_token(*byte)).filter(|at| *at > 0 && line[*at] == b':');
    let colon = colon.ok_or(Fault::FieldName)?;
    let value = &line[colon + 1..];
    // To its end, also behind a fault: without a way out, many bytes are looked at together.
    let has_control = value.iter().fold(false, |found, byte| found | is_control(*byte));
    if has_control {
        return Err(Fault::FieldValue);
    }
    Ok((&line[..colon], trim(value)))
}

/// White space of HTTP is these two and no other: what else looks like it to somebody is part of the value.
fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// Whether this name is meant, also by servers that do not tell `_` from `-`.
fn is_named(name: &[u8], wanted: &[u8]) -> bool {
    name.iter()
        .zip(wanted)
        .all(|(byte, wanted)| byte.eq_ignore_ascii_case(wanted) || (*byte == b'_' && *wanted == b'-'))
}

fn is_exact(name: &[u8]) -> bool {
    !name.contains(&b'_')
}

/// Digits and nothing else, not more than fit.
fn plain_number(value: &[u8]) -> Option<u64> {
    const DIGITS_MAX: usize = 18;
    if value.is_empty() || value.len() > DIGITS_MAX {
        return None;
    }
    value.iter().try_fold(0, |number: u64, digit| {
        digit.is_ascii_digit().then(|| number * 10 + u64::from(digit - b'0'))
    })
}

fn has_token(value: &[u8], is_wanted: impl Fn(&[u8]) -> bool) -> bool {
    value.split(|byte| *byte == b',').any(|token| is_wanted(trim(token)))
}

/// Another protocol than HTTP: an offer of HTTP/2 or TLS is not passed on, so it changes nothing.
pub(in crate::proxy) fn is_other_protocol(token: &[u8]) -> bool {
    let begins = |start: &[u8]| {
        token.get(..start.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(start))
    };
    !token.is_empty() && !token.eq_ignore_ascii_case(b"h2c") && !begins(b"tls/") && !begins(b"http/")
}

/// A name or an address, with a port or without.
pub(in crate::proxy) fn is_host(value: &[u8]) -> bool {
    let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~:[]%!$&'()*+;=".contains(byte);
    !value.is_empty() && value.iter().all(is_allowed)
}

/// What no value may hold.
fn is_control(byte: u8) -> bool {
    (byte < b' ') & (byte != b'\t') | (byte == 0x7f)
}

fn is_token(byte: u8) -> bool {
    const TOKEN: [bool; 256] = {
        let mut table = [false; 256];
        let allowed = b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let mut at = 0;
        while at < allowed.len() {
            table[allowed[at] as usize] = true;
            at += 1;
        }
        table
    };
    TOKEN[usize::from(byte)]
}
