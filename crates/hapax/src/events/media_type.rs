//! Media types, as far as they say how data is written.

/// `type/subtype` without parameters.
pub(super) fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

/// Whether the data is JSON: `*/json` or `*/*+json`.
pub(super) fn is_json(media_type: &str) -> bool {
    let subtype = essence(media_type).split_once('/').map_or("", |(_, subtype)| subtype);
    subtype.eq_ignore_ascii_case("json") || ends_with_ignore_case(subtype, "+json")
}

/// Whether the data is text in other notations: `text/*`, `*/xml` and `*/*+xml`.
pub(super) fn is_text(media_type: &str) -> bool {
    let (kind, subtype) = essence(media_type).split_once('/').unwrap_or_default();
    kind.eq_ignore_ascii_case("text")
        || subtype.eq_ignore_ascii_case("xml")
        || ends_with_ignore_case(subtype, "+xml")
}

fn ends_with_ignore_case(text: &str, end: &str) -> bool {
    text.len() > end.len() && text.as_bytes()[text.len() - end.len()..].eq_ignore_ascii_case(end.as_bytes())
}
