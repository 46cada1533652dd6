//! Validates one complete head: every parser must read it alike. Tells the framing of the body.

use memchr::memchr;

/// Why a head is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FramingFault {
    /// A line ends with a bare line feed.
    BareLineFeed,
    /// The first line is not a request line.
    RequestLine,
    /// The target has an unsupported form, or names another host than `Host`.
    Target,
    /// A field name is invalid: a space before the colon, or a folded line.
    FieldName,
    /// A field value has control characters.
    FieldValue,
    /// `Content-Length` is repeated, or not a plain number.
    ContentLength,
    /// `Transfer-Encoding` is repeated, not exactly `chunked`, or in HTTP/1.0.
    TransferEncoding,
    /// Both `Content-Length` and `Transfer-Encoding`.
    TwoLengths,
    /// `Host` is missing, repeated or invalid.
    Host,
    /// An upgrade is requested together with a body.
    UpgradeWithBody,
    /// Bytes of the other protocol came before the upgrade was accepted.
    EarlyUpgrade,
    /// The head is larger than allowed.
    TooLarge,
    /// The chunked body after the head is invalid.
    Chunks,
}

/// Accepted here, and refused by `connection.rs` with a response that says why.
const CONNECT: &[u8] = b"CONNECT";

/// The framing of the body after a head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BodyFraming {
    None,
    Length(u64),
    Chunked,
    /// Nothing until the upgrade is accepted. A tunnel never is.
    Upgrade,
}

/// The framing fields of a head.
#[derive(Default)]
struct FramingFields<'a> {
    length: Option<u64>,
    is_chunked: bool,
    host: Option<&'a [u8]>,
    connection_upgrades: bool,
    protocol: bool,
}

/// Validates a head that ends with its empty line.
pub(super) fn validate_head(head: &[u8]) -> Result<BodyFraming, FramingFault> {
    let head = head.strip_prefix(b"\r\n").unwrap_or(head);
    let mut lines = Lines(head);
    let line = lines.next().ok_or(FramingFault::RequestLine)?;
    let (method, target, is_old) = request_line(line)?;
    let mut found = FramingFields::default();
    for line in lines {
        if !line.is_empty() {
            read_field(line, &mut found)?;
        }
    }
    if found.is_chunked && is_old {
        return Err(FramingFault::TransferEncoding);
    }
    if found.host.is_none() && !is_old {
        return Err(FramingFault::Host);
    }
    check_target(method, target, found.host)?;
    let is_upgrade = method == CONNECT || (found.connection_upgrades && found.protocol && !is_old);
    match (found.length, found.is_chunked) {
        (Some(_), true) => Err(FramingFault::TwoLengths),
        (Some(1..), _) | (_, true) if is_upgrade => Err(FramingFault::UpgradeWithBody),
        (_, false) if is_upgrade => Ok(BodyFraming::Upgrade),
        (Some(length), false) => Ok(BodyFraming::Length(length)),
        (None, true) => Ok(BodyFraming::Chunked),
        (None, false) => Ok(BodyFraming::None),
    }
}

/// Lines without their CRLF, which `end_of_head` has checked.
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
fn request_line(line: &[u8]) -> Result<(&[u8], &[u8], bool), FramingFault> {
    let mut parts = line.split(|byte| *byte == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(FramingFault::RequestLine);
    };
    let is_old = match version {
        b"HTTP/1.1" => false,
        b"HTTP/1.0" => true,
        _ => return Err(FramingFault::RequestLine),
    };
    if method.is_empty() || !method.iter().all(|byte| is_token(*byte)) {
        return Err(FramingFault::RequestLine);
    }
    if target.is_empty() || target.iter().any(|byte| !byte.is_ascii_graphic() || *byte == b'#') {
        return Err(FramingFault::Target);
    }
    Ok((method, target, is_old))
}

/// Whether the target has a supported form and agrees with `Host`.
fn check_target(method: &[u8], target: &[u8], host: Option<&[u8]>) -> Result<(), FramingFault> {
    if method == CONNECT {
        return if is_host(target) { Ok(()) } else { Err(FramingFault::Target) };
    }
    if target[0] == b'/' || (target == b"*" && method == b"OPTIONS") {
        return Ok(());
    }
    let rest = strip_scheme(target).ok_or(FramingFault::Target)?;
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    let authority = &rest[..end];
    match host {
        Some(host) if host.eq_ignore_ascii_case(authority) => Ok(()),
        None if is_host(authority) => Ok(()),
        _ => Err(FramingFault::Target),
    }
}

fn strip_scheme(target: &[u8]) -> Option<&[u8]> {
    [b"http://".as_slice(), b"https://"].into_iter().find_map(|scheme| {
        let (start, rest) = target.split_at_checked(scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then_some(rest)
    })
}

fn read_field<'a>(line: &'a [u8], found: &mut FramingFields<'a>) -> Result<(), FramingFault> {
    let (name, value) = split_field(line)?;
    // Only names of these lengths are compared.
    match name.len() {
        4 if is_named(name, b"host") => {
            if found.host.is_some() || !is_host(value) {
                return Err(FramingFault::Host);
            }
            found.host = Some(value);
        }
        7 if is_named(name, b"upgrade") => found.protocol |= has_token(value, is_other_protocol),
        10 if is_named(name, b"connection") => {
            found.connection_upgrades |= has_token(value, |token| token.eq_ignore_ascii_case(b"upgrade"));
        }
        14 if is_named(name, b"content-length") => {
            let length = plain_number(value).filter(|_| found.length.is_none() && is_exact(name));
            found.length = Some(length.ok_or(FramingFault::ContentLength)?);
        }
        17 if is_named(name, b"transfer-encoding") => {
            if found.is_chunked || !is_exact(name) || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(FramingFault::TransferEncoding);
            }
            found.is_chunked = true;
        }
        _ => {}
    }
    Ok(())
}

/// Whether this field determines the length or the host of a request.
pub(super) fn is_framing_field(name: &[u8]) -> bool {
    [b"host".as_slice(), b"content-length", b"transfer-encoding"]
        .iter()
        .any(|wanted| name.len() == wanted.len() && is_named(name, wanted))
}

/// Name and value of a field line.
pub(super) fn split_field(line: &[u8]) -> Result<(&[u8], &[u8]), FramingFault> {
    let colon = line.iter().position(|byte| !is_token(*byte)).filter(|at| *at > 0 && line[*at] == b':');
    let colon = colon.ok_or(FramingFault::FieldName)?;
    let value = &line[colon + 1..];
    // No early exit, so that the loop is vectorised.
    let has_control = value.iter().fold(false, |found, byte| found | is_control(*byte));
    if has_control {
        return Err(FramingFault::FieldValue);
    }
    Ok((&line[..colon], trim(value)))
}

/// HTTP's white space is SP and HTAB only; other characters are part of the value.
fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// Whether the name equals `wanted`, also for servers that treat `_` as `-`.
fn is_named(name: &[u8], wanted: &[u8]) -> bool {
    name.iter()
        .zip(wanted)
        .all(|(byte, wanted)| byte.eq_ignore_ascii_case(wanted) || (*byte == b'_' && *wanted == b'-'))
}

fn is_exact(name: &[u8]) -> bool {
    !name.contains(&b'_')
}

/// Digits only, and no more than fit into the integer.
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

/// Whether an `Upgrade` token names a protocol other than HTTP. Offers of HTTP/2 or TLS are not forwarded and change
/// nothing.
pub(crate) fn is_other_protocol(token: &[u8]) -> bool {
    let starts_with = |start: &[u8]| {
        token.get(..start.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(start))
    };
    !token.is_empty()
        && !token.eq_ignore_ascii_case(b"h2c")
        && !starts_with(b"tls/")
        && !starts_with(b"http/")
}

/// Whether this is a host name or address, with or without a port.
pub(crate) fn is_host(value: &[u8]) -> bool {
    let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~:[]%!$&'()*+;=".contains(byte);
    !value.is_empty() && value.iter().all(is_allowed)
}

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
