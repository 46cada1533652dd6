//! A store's URL, split into the driver's part and our options.

/// The default port of a server.
pub(crate) const PORT_DEFAULT: u16 = 5432;

/// Options that are passed to the driver.
const DRIVER_OPTIONS: [&str; 5] =
    ["sslmode", "channel_binding", "application_name", "host", "target_session_attrs"];

/// The two parts of a URL.
#[derive(Debug)]
pub(crate) struct Split {
    /// The URL for the driver.
    pub(crate) driver: String,
    pub(crate) has_sslmode: bool,
    /// The other options, unescaped.
    pub(crate) own: Vec<(String, String)>,
}

/// Splits a URL; on error, says what is wrong with it without repeating it.
pub(crate) fn split(url: &str) -> Result<Split, String> {
    let rest = url
        .strip_prefix("postgres://")
        .or_else(|| url.strip_prefix("postgresql://"))
        .ok_or("its scheme is neither postgres nor postgresql")?;
    if rest.contains('#') {
        return Err("it may not have a fragment (#)".to_owned());
    }
    let (location, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut split = Split { driver: String::new(), has_sslmode: false, own: Vec::new() };
    let mut passed = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').ok_or("an option has no value")?;
        if !DRIVER_OPTIONS.contains(&name) {
            split.own.push((unescape(name)?, unescape(value)?));
            continue;
        }
        split.has_sslmode |= name == "sslmode";
        // Certificates are always verified here, as libpq does only with verify-full.
        let value =
            if name == "sslmode" { value.replace("verify-full", "require") } else { value.to_owned() };
        passed.push(format!("{name}={value}"));
    }
    split.driver = format!("postgres://{location}?{}", passed.join("&"));
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
        bytes.push(byte.ok_or("an option has an invalid percent escape")?);
        rest = &after[2..];
    }
    String::from_utf8(bytes).map_err(|_| "an option is not UTF-8".to_owned())
}
