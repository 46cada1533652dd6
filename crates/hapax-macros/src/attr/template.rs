//! [`Template`]: the text of a key with placeholders, such as `order:{order.id}`.

use syn::{Error, Ident, LitStr, Result};

/// A key with placeholders.
pub(crate) struct Template {
    pub(crate) literal: LitStr,
    pub(crate) pieces: Vec<Piece>,
}

/// A part of a template.
pub(crate) enum Piece {
    /// Copied.
    Text(String),
    /// An argument, or a field of one.
    Value { root: Ident, members: Vec<Member> },
}

/// A field.
pub(crate) enum Member {
    /// `.name`
    Named(Ident),
    /// `.0`
    Numbered(u32),
}

impl Template {
    pub(super) fn parse(literal: &LitStr) -> Result<Self> {
        let error = |message: &str| Error::new(literal.span(), message);
        let text = literal.value();
        let mut rest = text.as_str();
        let mut pieces = Vec::new();
        let mut copied = String::new();
        while let Some(at) = rest.find(['{', '}']) {
            copied.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                copied.push_str(brace);
                rest = after;
            } else if brace == "}" {
                return Err(error("unmatched `}` in the key: write `}}` for a brace"));
            } else {
                let (place, after) = rest
                    .split_once('}')
                    .ok_or_else(|| error("unmatched `{` in the key: write `{{` for a brace"))?;
                pieces.extend((!copied.is_empty()).then(|| Piece::Text(std::mem::take(&mut copied))));
                pieces.push(value(place, literal)?);
                rest = after;
            }
        }
        copied.push_str(rest);
        pieces.extend((!copied.is_empty()).then_some(Piece::Text(copied)));
        if !pieces.iter().any(|piece| matches!(piece, Piece::Value { .. })) {
            return Err(error(
                "the key has no placeholder, so that every call would be the same operation: \
                 name an argument, such as \"order:{order_id}\"",
            ));
        }
        Ok(Self { literal: literal.clone(), pieces })
    }
}

/// The content of a placeholder.
fn value(place: &str, literal: &LitStr) -> Result<Piece> {
    let error = |message: String| Error::new(literal.span(), message);
    if place.contains(':') {
        return Err(error(format!(
            "`{{{place}}}`: a placeholder has no format, the value is printed by `Display`"
        )));
    }
    let wrong =
        || error(format!("`{{{place}}}` is no argument: write `{{name}}`, `{{name.field}}` or `{{name.0}}`"));
    let mut parts = place.split('.');
    let root = parts.next().and_then(|name| ident(name, literal)).ok_or_else(wrong)?;
    let member = |part: &str| match part.parse() {
        Ok(number) if !part.starts_with('+') => Some(Member::Numbered(number)),
        _ => ident(part, literal).map(Member::Named),
    };
    let members = parts.map(member).collect::<Option<_>>().ok_or_else(wrong)?;
    Ok(Piece::Value { root, members })
}

/// Also `self`, and `r#type` for a raw name.
fn ident(text: &str, literal: &LitStr) -> Option<Ident> {
    use syn::ext::IdentExt;
    use syn::parse::Parser;
    let mut ident = Ident::parse_any.parse_str(text).ok()?;
    (ident == text).then(|| {
        ident.set_span(literal.span());
        ident
    })
}
