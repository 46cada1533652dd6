//! Rule ids in the protocol (`K-06`) and as prefixes of test names (`k_06_two_lines_are_refused`), and the set of passed
//! tests.

use std::collections::BTreeSet;
use std::fmt;

/// A rule's id: a letter and two digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RuleId {
    letter: char,
    number: u8,
}

impl RuleId {
    /// Parses `K-06`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (letter, digits) = text.split_once('-')?;
        let letter = single(letter).filter(char::is_ascii_uppercase)?;
        Some(Self { letter, number: two_digits(digits)? })
    }

    /// Whether a test or case of this name covers the rule: `key::k_06_two_lines` or `k-06-comma-list`.
    pub(super) fn is_in_name(self, name: &str) -> bool {
        let case = format!("{self}-").to_lowercase();
        name.starts_with(&case) || Self::named_by(name).contains(&self)
    }

    /// All ids that are prefixes of a segment of the test's path: `key::k_01_k_04_agrees` has two.
    fn named_by(path: &str) -> Vec<Self> {
        path.split("::").flat_map(Self::leading).collect()
    }

    fn leading(segment: &str) -> Vec<Self> {
        let mut ids = Vec::new();
        let mut words = segment.split('_');
        while let (Some(letter), Some(digits)) = (words.next(), words.next()) {
            // `a_16_byte_key` starts with an article; no rule has that letter.
            let letter = single(letter).filter(|letter| letter.is_ascii_lowercase() && *letter != 'a');
            let (Some(letter), Some(number)) = (letter, two_digits(digits)) else { break };
            ids.push(Self { letter: letter.to_ascii_uppercase(), number });
        }
        ids
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:02}", self.letter, self.number)
    }
}

fn single(text: &str) -> Option<char> {
    let mut characters = text.chars();
    characters.next().filter(|_| characters.next().is_none())
}

fn two_digits(text: &str) -> Option<u8> {
    let is_number = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// The names of the tests that ran and passed.
#[derive(Debug, Default)]
pub(crate) struct PassedTests {
    names: BTreeSet<String>,
}

impl PassedTests {
    /// Reads one line of a test runner's output; lines other than a passed test are ignored.
    pub(crate) fn read(&mut self, line: &str) {
        if let Some(name) = by_nextest(line).or_else(|| by_cargo_test(line)) {
            self.names.insert(name);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Each test with its rule ids.
    pub(super) fn tests(&self) -> impl Iterator<Item = (&str, Vec<RuleId>)> {
        self.names.iter().map(|name| {
            let path = name.rsplit(' ').next().unwrap_or(name);
            (name.as_str(), RuleId::named_by(path))
        })
    }
}

/// `PASS [   0.004s] ( 3/65) hapax-core::it key::k_07_…`, indented. `LEAK` is a test that passed and left a process
/// running.
fn by_nextest(line: &str) -> Option<String> {
    let line = line.trim_start();
    let rest = line.strip_prefix("PASS [").or_else(|| line.strip_prefix("LEAK ["))?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let [.., binary, name] = words[..] else { return None };
    Some(format!("{binary} {name}"))
}

/// `test key::k_07_… ... ok`, with an optional `- should panic` after the name.
fn by_cargo_test(line: &str) -> Option<String> {
    let name = line.strip_prefix("test ")?.strip_suffix(" ... ok")?;
    Some(name.strip_suffix(" - should panic").unwrap_or(name).to_owned())
}

#[cfg(test)]
mod tests;
