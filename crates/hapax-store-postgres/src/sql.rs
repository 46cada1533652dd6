//! [`Sql`]: the text of every statement, generated once for the store's schema.
//!
//! The statements are in `sql/`. This module knows neither their parameters nor their meaning.

/// The length limit of a schema's name, so that the channel's name fits.
const SCHEMA_LENGTH_MAX: usize = 48;

/// The statements of one store.
#[derive(Debug)]
pub(crate) struct Sql {
    /// The notification channel.
    pub(crate) channel: String,
    pub(crate) claim: String,
    pub(crate) fetch: String,
    pub(crate) write: String,
    /// The completion of one attempt, in its own transaction.
    pub(crate) complete_one: String,
    pub(crate) holder: String,
    pub(crate) replace: String,
    pub(crate) remove: String,
    pub(crate) sweep: String,
    pub(crate) page: String,
    /// The same for queries that match open records only.
    pub(crate) page_open: String,
    pub(crate) stats: String,
    pub(crate) watch: String,
    pub(crate) settings: String,
}

impl Sql {
    pub(crate) fn new(schema: &str) -> Self {
        let text = |source: &str| text(source, schema);
        let page = text(include_str!("sql/page.sql"));
        let fetch = text(include_str!("sql/fetch.sql"));
        Self {
            channel: format!("hapax_{schema}"),
            claim: text(include_str!("sql/claim.sql")).replace("FETCH_RECORDS", &fetch),
            fetch,
            write: text(include_str!("sql/write.sql")),
            complete_one: text(include_str!("sql/complete_one.sql")),
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

/// A statement for `schema`, without comments: they would be sent with every call.
pub(crate) fn text(source: &str, schema: &str) -> String {
    let lines = source.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("--"));
    lines.collect::<Vec<_>>().join("\n").replace("SCHEMA.", &format!("\"{schema}\"."))
}

/// Whether a name is a valid schema: usable without quotes.
pub(crate) fn is_schema(name: &str) -> bool {
    let is_first = |byte: &u8| matches!(byte, b'a'..=b'z' | b'_');
    name.len() <= SCHEMA_LENGTH_MAX
        && name.as_bytes().first().is_some_and(is_first)
        && name.bytes().all(|byte| is_first(&byte) || byte.is_ascii_digit())
        // Reserved by the server.
        && !name.starts_with("pg_")
}

#[cfg(test)]
mod tests;
