//! A store's URL, taken apart into what the driver reads and what is ours.

/// The port that a server listens on unless told otherwise.
pub(crate) const PORT_DEFAULT: u16 = 5432;

/// Options that the driver knows and that are passed on to it.
const DRIVER_OPTIONS: [&str; 5] =
    ["sslmode", "channel_binding", "application_name", "host", "target_session_attrs"];

/// A URL in two parts.
#[derive(Debug)]
pub(crate) struct Split {
    /// What the driver reads.
    pub(crate) driver: String,
    pub(crate) has_sslmode: bool,
    /// The other options, by name, without their escapes.
    pub(crate) own: Vec<(String, String)>,
}

/// Takes a URL apart; otherwise what is wrong with it, without repeating it.
pub(crate) fn split(url: &str) -> Result<Split, String> {
    let rest = url
        .strip_prefix("postgres://")
        .or_else(|| url.strip_prefix("postgresql://"))
        .ok_or("it begins neither with postgres:// nor with postgresql://")?;
    if rest.contains('#') {
        return Err("it may not have a part after #".to_owned());
    }
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut split = Split { driver: String::new(), has_sslmode: false, own: Vec::new() };
    let mut passed = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').ok_or("an option has no value")?;
        if !DRIVER_OPTIONS.contains(&name) {
            split.own.push((unescape(name)?, unescape(value)?));
            continue;
        }
        split.has_sslmode |= name == "sslmode";
        // Certificates are always checked here, as far as others go only with these.
        let value =
            if name == "sslmode" { value.replace("verify-full", "require") } else { value.to_owned() };
        passed.push(format!("{name}={value}"));
    }
    split.driver = format!("postgres://{place}?{}", passed.join("&"));
    Ok(split)
}

fn unescape(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.ok_or("an escape in an option is not one")?);
        rest = &after[2..];
    }
    String::from_utf8(bytes).map_err(|_| "an option is not text".to_owned())
}
