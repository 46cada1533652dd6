//! [`PathPattern`]: which paths a route covers, and which paths are equal, for routes and scopes.
//!
//! It compares texts byte by byte, or ignoring case. It is independent of requests.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::canonical;

/// How the case of letters in paths is compared, by routes and in the scope of a key (M-01, S-01).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum PathCase {
    /// Case-sensitive: `/Orders` differs from `/orders`.
    #[default]
    Exact,
    /// Ignores the case of A to Z, as Express and ASP.NET do.
    Ignore,
}

/// The normal form of all equal paths: without one trailing slash, and in lower case if case is ignored.
pub(super) fn compared(path: &str, case: PathCase) -> Cow<'_, str> {
    let path = without_slash(path);
    match case {
        PathCase::Exact => Cow::Borrowed(path),
        PathCase::Ignore => Cow::Owned(path.to_ascii_lowercase()),
    }
}

/// Many servers treat `/orders/` and `/orders` as equal. Only a single trailing slash is removed.
fn without_slash(path: &str) -> &str {
    match path.strip_suffix('/') {
        Some(shorter) if !shorter.is_empty() && !shorter.ends_with('/') => shorter,
        _ => path,
    }
}

/// Which paths a route covers (M-01).
///
/// | written | covers |
/// |---|---|
/// | `/v1/payments` | that path and no other |
/// | `/v1/payments/*` or `/v1/payments/{id}` | one more segment, which is not empty |
/// | `/v1/payments/**` | any number of further segments, also none |
/// | `~/v[12]/.+` | a regular expression for the whole path (feature `regex`) |
///
/// One trailing slash does not matter, neither in a pattern nor in a request. A literal may be percent-encoded in any
/// way: `/%7Ejoe` is `/~joe`. A regular expression is compared with the canonical form: `~`, `%2F`. Case counts unless
/// the policy chooses [`PathCase::Ignore`].
///
/// ```
/// use hapax::http::PathPattern;
///
/// let payments: PathPattern = "/v1/payments/**".parse()?;
/// assert!(payments.matches("/v1/payments/") && payments.matches("/v1/payments/7/refunds"));
/// assert!(!payments.matches("/v1/payments-old"));
/// # Ok::<(), hapax::http::PathPatternError>(())
/// ```
#[derive(Clone)]
pub struct PathPattern {
    text: Arc<str>,
    kind: PatternKind,
    case: PathCase,
}

#[derive(Clone)]
enum PatternKind {
    Segments(Arc<[Segment]>),
    #[cfg(feature = "regex")]
    Regex {
        exact: regex::Regex,
        any_case: regex::Regex,
    },
}

enum Segment {
    Literal(Box<str>),
    One,
    Any,
}

impl PathPattern {
    /// The paths that the regular expression matches as a whole.
    ///
    /// # Errors
    /// [`PathPatternError`] when the expression does not compile.
    #[cfg(feature = "regex")]
    pub fn regex(expression: &str) -> Result<Self, PathPatternError> {
        let compile = |text: &str| regex::Regex::new(text).map_err(PathPatternError::regex);
        // Compiled alone first: `a)|(b` is invalid, but would become valid between the anchors.
        compile(expression)?;
        let kind = PatternKind::Regex {
            exact: compile(&format!(r"\A(?:{expression})\z"))?,
            any_case: compile(&format!(r"\A(?i:{expression})\z"))?,
        };
        Ok(Self { text: format!("{REGEX_MARK}{expression}").into(), kind, case: PathCase::Exact })
    }

    /// The same pattern for paths compared in this way.
    pub(super) fn compared_by(self, case: PathCase) -> Self {
        Self { case, ..self }
    }

    /// Whether the path is covered. It must be in the canonical form, with unreserved characters decoded and the
    /// hexadecimal digits of others in upper case. Takes time in proportion to the path's length times the pattern's.
    pub fn matches(&self, path: &str) -> bool {
        let path = without_slash(path);
        match &self.kind {
            PatternKind::Segments(pattern) => path.strip_prefix('/').is_some_and(|path| {
                covers(pattern, path.split('/'), |segment, text| segment.covers(text, self.case))
            }),
            #[cfg(feature = "regex")]
            PatternKind::Regex { exact, any_case } => {
                let regex = if self.case == PathCase::Ignore { any_case } else { exact };
                // An expression may be written with the trailing slash.
                regex.is_match(path) || regex.is_match(&format!("{path}/"))
            }
        }
    }

    /// Whether it certainly covers every path that the other one covers. For regular expressions that is decided only
    /// in simple cases.
    pub(super) fn includes(&self, other: &Self) -> bool {
        let cases = (self.case, other.case);
        match (&self.kind, &other.kind) {
            (PatternKind::Segments(all), PatternKind::Segments(some)) => {
                covers(all, some.iter(), |segment, one| segment.includes(one, cases))
            }
            #[cfg(feature = "regex")]
            (PatternKind::Segments(all), PatternKind::Regex { .. }) => matches!(**all, [Segment::Any]),
            #[cfg(feature = "regex")]
            (PatternKind::Regex { .. }, PatternKind::Segments(some)) => {
                let text = |segment: &Segment| match segment {
                    Segment::Literal(text) if is_compared_alike(text, cases) => Some(format!("/{text}")),
                    _ => None,
                };
                let path: Option<String> = some.iter().map(text).collect();
                path.is_some_and(|path| self.matches(&path))
            }
            #[cfg(feature = "regex")]
            (PatternKind::Regex { .. }, PatternKind::Regex { .. }) => {
                self.text == other.text && is_compared_alike(&self.text, cases)
            }
        }
    }

    /// The pattern as it is written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// The prefix of a regular expression in the text form of patterns. No path begins with it.
const REGEX_MARK: char = '~';

impl FromStr for PathPattern {
    type Err = PathPatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(expression) = text.strip_prefix(REGEX_MARK) {
            #[cfg(feature = "regex")]
            return Self::regex(expression);
            #[cfg(not(feature = "regex"))]
            return Err(PathPatternError::new(
                text.len() - expression.len(),
                "this needs the feature `regex`",
            ));
        }
        let Some(segments) = text.strip_prefix('/') else {
            return Err(PathPatternError::new(0, "a path starts with /"));
        };
        let mut pattern = Vec::new();
        let mut at = 1;
        for text in without_slash(text).strip_prefix('/').unwrap_or(segments).split('/') {
            let segment = Segment::parse(text, at)?;
            // A second `**` in a row matches nothing more.
            if !matches!((pattern.last(), &segment), (Some(Segment::Any), Segment::Any)) {
                pattern.push(segment);
            }
            at += text.len() + 1;
        }
        Ok(Self { text: text.into(), kind: PatternKind::Segments(pattern.into()), case: PathCase::Exact })
    }
}

impl TryFrom<&str> for PathPattern {
    type Error = PathPatternError;

    fn try_from(text: &str) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl Segment {
    fn parse(text: &str, start: usize) -> Result<Self, PathPatternError> {
        match text {
            "*" => return Ok(Self::One),
            "**" => return Ok(Self::Any),
            _ => {}
        }
        if let Some(name) = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
            return parameter(name, start + 1);
        }
        match text.char_indices().find_map(|(at, character)| Some((at, never_literal(character)?))) {
            // In the canonical form of paths; another form would match none of them.
            None => Ok(Self::Literal(canonical::path(text).as_ref().into())),
            Some((at, why)) => Err(PathPatternError::new(start + at, why)),
        }
    }

    fn covers(&self, segment: &str, case: PathCase) -> bool {
        match (self, case) {
            (Self::Literal(text), PathCase::Exact) => **text == *segment,
            (Self::Literal(text), PathCase::Ignore) => text.eq_ignore_ascii_case(segment),
            (Self::One, _) => !segment.is_empty(),
            (Self::Any, _) => true,
        }
    }

    /// Whether it matches everything that a segment of another pattern matches.
    fn includes(&self, other: &Self, cases: (PathCase, PathCase)) -> bool {
        match (self, other) {
            (Self::Any, _) | (Self::One, Self::One) => true,
            (_, Self::Any) | (Self::Literal(_), Self::One) => false,
            (_, Self::Literal(text)) => is_compared_alike(text, cases) && self.covers(text, cases.0),
        }
    }
}

/// Whether a text equals no more texts in the second way of comparing than in the first.
fn is_compared_alike(text: &str, cases: (PathCase, PathCase)) -> bool {
    cases != (PathCase::Exact, PathCase::Ignore)
        || !text.contains(|letter: char| letter.is_ascii_alphabetic())
}

fn parameter(name: &str, at: usize) -> Result<Segment, PathPatternError> {
    if name.starts_with('*') {
        return Err(PathPatternError::new(at, "write ** for any number of segments"));
    }
    if name.is_empty()
        || !name.chars().all(|character| character.is_alphanumeric() || "_-.".contains(character))
    {
        return Err(PathPatternError::new(at, "a name of letters, digits, _, - and . was expected"));
    }
    Ok(Segment::One)
}

/// Why the character cannot be a literal in a pattern. A pattern that matches no path would be an unnoticed mistake:
/// its requests would run unprotected.
fn never_literal(character: char) -> Option<&'static str> {
    match character {
        '*' => Some("* and ** stand for whole segments"),
        '{' | '}' => Some("{name} stands for a whole segment"),
        '?' | '#' => Some("a path ends before ? and #"),
        '!'..='~' => None,
        _ => Some("write it percent-encoded, as it is in a path"),
    }
}

/// Whether the pattern matches all parts, of a path or of another pattern.
///
/// Backtracks to the last `**` only: any part that an earlier one could match, the last one can match too.
fn covers<I>(pattern: &[Segment], parts: I, takes: impl Fn(&Segment, I::Item) -> bool) -> bool
where
    I: Iterator<Item: Copy> + Clone,
{
    let mut wanted = pattern;
    let mut rest = parts;
    let mut again: Option<(&[Segment], I)> = None;
    loop {
        match wanted.split_first() {
            Some((Segment::Any, [])) => return true,
            Some((Segment::Any, after)) => {
                again = Some((after, rest.clone()));
                wanted = after;
                continue;
            }
            Some((segment, after)) => match rest.next() {
                // A later start would leave even fewer parts.
                None => return false,
                Some(found) if takes(segment, found) => {
                    wanted = after;
                    continue;
                }
                Some(_) => {}
            },
            None if rest.next().is_none() => return true,
            None => {}
        }
        let Some((after, from)) = &mut again else {
            return false;
        };
        from.next();
        wanted = after;
        rest = from.clone();
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PathPattern({:?})", self.text)
    }
}

impl PartialEq for PathPattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for PathPattern {}

/// Why a text is not a path pattern, and where.
#[derive(Debug, thiserror::Error)]
#[error("invalid path pattern at position {at}: {why}")]
pub struct PathPatternError {
    at: usize,
    why: &'static str,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl PathPatternError {
    fn new(at: usize, why: &'static str) -> Self {
        Self { at, why, source: None }
    }

    #[cfg(feature = "regex")]
    fn regex(error: regex::Error) -> Self {
        let why = "the regular expression does not compile";
        Self { source: Some(error.into()), ..Self::new(REGEX_MARK.len_utf8(), why) }
    }

    /// The position of the error, in bytes from zero.
    pub fn at(&self) -> usize {
        self.at
    }
}

#[cfg(test)]
mod tests;
