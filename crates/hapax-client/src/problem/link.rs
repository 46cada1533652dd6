//! The field `Link` (RFC 8288): several links in a line, with parameters in any order.

/// The targets in one line that describe the response.
pub(super) fn described_by(line: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    let mut rest = line;
    while let Some((target, parameters)) = rest.split_once('<').and_then(|(_, link)| link.split_once('>')) {
        let (parameters, next) = parameters.split_at(until(parameters, b','));
        if relations(parameters).any(|relation| relation.eq_ignore_ascii_case("describedby")) {
            targets.push(target);
        }
        rest = next;
    }
    targets
}

/// The relations of a link, which may be several in one parameter.
fn relations(mut parameters: &str) -> impl Iterator<Item = &str> {
    let parameters = std::iter::from_fn(move || {
        let rest = parameters.split_once(';')?.1;
        let (parameter, next) = rest.split_at(until(rest, b';'));
        parameters = next;
        Some(parameter)
    });
    let named = parameters.filter_map(|parameter| parameter.split_once('='));
    let relation = named.filter(|(name, _)| name.trim().eq_ignore_ascii_case("rel")).map(|(_, value)| value);
    relation.flat_map(|value| value.trim().trim_matches('"').split_ascii_whitespace())
}

/// Where the first `stop` outside of quotes is, or the end.
fn until(text: &str, stop: u8) -> usize {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            _ if byte == stop && !is_quoted => return at,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests;
