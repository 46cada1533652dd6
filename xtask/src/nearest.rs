//! Suggests the nearest known name for a mistyped one.

/// `": did you mean `store`?"`, or an empty string when no known name is near enough.
pub(crate) fn hint<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let near = known.into_iter().map(|name| (distance(typed, name), name)).min();
    match near {
        // More than half of the name wrong is not a typo.
        Some((wrong, name)) if wrong * 2 <= name.len().max(2) => format!(": did you mean `{name}`?"),
        _ => String::new(),
    }
}

/// Levenshtein distance with a single row.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let changed = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests;
