//! Suggestions for misspelled words, by edit distance.

/// Words at a larger distance are not suggested.
const EDITS_MAX: usize = 3;

/// The nearest of `known`, if it is near enough. The shorter the word, the fewer edits are allowed.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_ascii_lowercase();
    let edits_max = (word.chars().count() / 2).min(EDITS_MAX);
    known
        .into_iter()
        .map(|known| (strsim::damerau_levenshtein(&word, &known.to_ascii_lowercase()), known))
        .min_by_key(|(edits, _)| *edits)
        .filter(|(edits, _)| *edits <= edits_max)
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_word_is_matched_and_another_word_is_not() {
        let known = ["retention", "lease", "wait"];
        assert_eq!(nearest("retenton", known), Some("retention"));
        assert_eq!(nearest("LEESE", known), Some("lease"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest("w", known), None);
    }
}
