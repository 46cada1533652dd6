//! [`PathPattern`]: which paths a route covers.
//!
//! It knows texts and compares them byte by byte. What a request's path is, and what happens to a request that is
//! covered, is for others to say.

use std::error::Error;
use std::fmt;
use std::str::{FromStr, Split};
use std::sync::Arc;

use super::canonical;

/// Which paths a route covers (M-01).
///
/// | written | covers |
/// |---|---|
/// | `/v1/payments` | that path and no other |
/// | `/v1/payments/*` or `/v1/payments/{id}` | one more segment, which is not empty |
/// | `/v1/payments/**` | any number of further segments, also none |
/// | `~/v[12]/.+` | by a regular expression for the whole path (feature `regex`) |
///
/// A literal may be percent-encoded in any way: `/%7Ejoe` is `/~joe`. A regular expression is compared with the one
/// spelling that is left: `~`, `%2F`.
///
/// ```
/// use hapax::http::PathPattern;
///
/// let payments: PathPattern = "/v1/payments/**".parse()?;
/// assert!(payments.matches("/v1/payments") && payments.matches("/v1/payments/7/refunds"));
/// assert!(!payments.matches("/v1/payments-old"));
/// # Ok::<(), hapax::http::PathPatternError>(())
/// ```
#[derive(Clone)]
pub struct PathPattern {
    text: Arc<str>,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Segments(Arc<[Segment]>),
    #[cfg(feature = "regex")]
    Regex(regex::Regex),
}

enum Segment {
    Literal(Box<str>),
    One,
    Any,
}

impl PathPattern {
    /// The paths that the regular expression describes from their first to their last character.
    ///
    /// # Errors
    /// [`PathPatternError`] when the expression does not compile.
    #[cfg(feature = "regex")]
    pub fn regex(expression: &str) -> Result<Self, PathPatternError> {
        let compile = |text: &str| regex::Regex::new(text).map_err(PathPatternError::regex);
        // Alone first: `a)|(b` is no expression, but would become one between the anchors.
        compile(expression)?;
        let kind = Kind::Regex(compile(&format!(r"\A(?:{expression})\z"))?);
        Ok(Self { text: format!("{REGEX_MARK}{expression}").into(), kind })
    }

    /// Whether the path is covered: one that is spelled as the layer compares paths, with unreserved characters plain
    /// and the hexadecimal digits of others in upper case. Takes time in proportion to the path's length times the
    /// pattern's.
    pub fn matches(&self, path: &str) -> bool {
        match &self.kind {
            Kind::Segments(pattern) => {
                path.strip_prefix('/').is_some_and(|path| covers(pattern, path.split('/')))
            }
            #[cfg(feature = "regex")]
            Kind::Regex(regex) => regex.is_match(path),
        }
    }

    /// The pattern as it is written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// With what a regular expression begins where patterns are written as text. No path begins with it.
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
        for text in segments.split('/') {
            let segment = Segment::parse(text, at)?;
            // A second `**` in a row covers nothing more.
            if !matches!((pattern.last(), &segment), (Some(Segment::Any), Segment::Any)) {
                pattern.push(segment);
            }
            at += text.len() + 1;
        }
        Ok(Self { text: text.into(), kind: Kind::Segments(pattern.into()) })
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
            // In the one spelling that paths are compared in: another would match none of them.
            None => Ok(Self::Literal(canonical::path(text).as_ref().into())),
            Some((at, why)) => Err(PathPatternError::new(start + at, why)),
        }
    }

    fn covers(&self, segment: &str) -> bool {
        match self {
            Self::Literal(text) => **text == *segment,
            Self::One => !segment.is_empty(),
            Self::Any => true,
        }
    }
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

/// Why the character stands for itself nowhere in a pattern. A pattern that can match no path is a mistake that
/// nobody would notice: its requests run unprotected.
fn never_literal(character: char) -> Option<&'static str> {
    match character {
        '*' => Some("* and ** stand for whole segments"),
        '{' | '}' => Some("{name} stands for a whole segment"),
        '?' | '#' => Some("a path ends before ? and #"),
        '!'..='~' => None,
        _ => Some("write it percent-encoded, as it is in a path"),
    }
}

/// Goes back to the last `**` only: whatever an earlier one could take instead, the last one can take too.
fn covers(pattern: &[Segment], path: Split<'_, char>) -> bool {
    let mut wanted = pattern;
    let mut rest = path;
    let mut again: Option<(&[Segment], Split<'_, char>)> = None;
    loop {
        match wanted.split_first() {
            Some((Segment::Any, [])) => return true,
            Some((Segment::Any, after)) => {
                again = Some((after, rest.clone()));
                wanted = after;
                continue;
            }
            Some((segment, after)) => match rest.next() {
                // Starting later would leave even less.
                None => return false,
                Some(found) if segment.covers(found) => {
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

/// Why a text is no path pattern, and where.
#[derive(Debug)]
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

    /// Where the text stops making sense, in bytes from zero.
    pub fn at(&self) -> usize {
        self.at
    }
}

impl fmt::Display for PathPatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the path pattern makes no sense at position {}: {}", self.at, self.why)
    }
}

impl Error for PathPatternError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests;
