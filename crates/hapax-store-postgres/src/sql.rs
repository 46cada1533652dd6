//! [`Sql`]: the text of every statement, made once for the schema that the store is in.
//!
//! The statements are in `sql/`. This file knows neither their parameters nor what they mean.

/// The names that are taken for schemas: as they can be typed without quotes, and short enough for a channel.
const SCHEMA_LENGTH_MAX: usize = 48;

/// The statements of one store.
#[derive(Debug)]
pub(crate) struct Sql {
    /// What is told when a record changes that somebody waits for.
    pub(crate) channel: String,
    pub(crate) claim: String,
    pub(crate) look: String,
    pub(crate) write: String,
    pub(crate) holder: String,
    pub(crate) replace: String,
    pub(crate) remove: String,
    pub(crate) sweep: String,
    pub(crate) page: String,
    /// The same for those who look for open records only.
    pub(crate) page_open: String,
    pub(crate) stats: String,
    pub(crate) watch: String,
    pub(crate) settings: String,
}

impl Sql {
    pub(crate) fn new(schema: &str) -> Self {
        let text = |source: &str| text(source, schema);
        let page = text(include_str!("sql/page.sql"));
        let look = text(include_str!("sql/look.sql"));
        Self {
            channel: format!("hapax_{schema}"),
            claim: text(include_str!("sql/claim.sql")).replace("LOOK", &look),
            look,
            write: text(include_str!("sql/write.sql")),
            holder: text(include_str!("sql/holder.sql")),
            replace: text(include_str!("sql/replace.sql")),
            remove: text(include_str!("sql/remove.sql")),
            sweep: text(include_str!("sql/sweep.sql")),
            page: page.replace("OPEN_ONLY", ""),
            page_open: page.replace("OPEN_ONLY", "AND state IN (1, 4)"),
            stats: text(include_str!("sql/stats.sql")),
            watch: text(include_str!("sql/watch.sql")),
            settings: text(include_str!("sql/settings.sql")),
        }
    }
}

/// A statement in `schema`, without the comments: they would be sent with every call.
pub(crate) fn text(source: &str, schema: &str) -> String {
    let lines = source.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("--"));
    lines.collect::<Vec<_>>().join("\n").replace("SCHEMA.", &format!("\"{schema}\"."))
}

/// Whether a schema may be called so.
pub(crate) fn is_schema(name: &str) -> bool {
    let is_first = |byte: &u8| matches!(byte, b'a'..=b'z' | b'_');
    name.len() <= SCHEMA_LENGTH_MAX
        && name.as_bytes().first().is_some_and(is_first)
        && name.bytes().all(|byte| is_first(&byte) || byte.is_ascii_digit())
        // The server keeps these for itself.
        && !name.starts_with("pg_")
}

#[cfg(test)]
mod tests;
