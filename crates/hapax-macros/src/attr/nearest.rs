//! The known name nearest to a mistyped one.

/// None if more than half of the name is wrong.
pub(crate) fn nearest<'a>(typed: &str, known: &[&'a str]) -> Option<&'a str> {
    let (wrong, name) = known.iter().map(|name| (distance(typed, name), *name)).min()?;
    (wrong * 2 <= name.len()).then_some(name)
}

/// The Levenshtein distance, with one row.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (above, typed) in (1..).zip(from.chars()) {
        let mut diagonal = std::mem::replace(&mut row[0], above);
        for (column, letter) in (1..).zip(&to) {
            let replaced = diagonal + usize::from(typed != *letter);
            diagonal = row[column];
            row[column] = replaced.min(diagonal + 1).min(row[column - 1] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_is_near_and_another_word_is_not() {
        let known = ["key", "scope", "retention"];
        assert_eq!(nearest("retenton", &known), Some("retention"));
        assert_eq!(nearest("scop", &known), Some("scope"));
        assert_eq!(nearest("database", &known), None);
    }
}
