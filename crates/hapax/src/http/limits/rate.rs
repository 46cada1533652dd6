//! [`Rate`]: a number of attempts per time span.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A number of attempts per time span, written `10/1m`: ten at once, and then one every six seconds.
///
/// ```
/// use hapax::http::Rate;
/// use std::time::Duration;
///
/// let rate: Rate = "10/1m".parse()?;
/// assert_eq!((rate.attempts(), rate.per()), (10, Duration::from_secs(60)));
/// # Ok::<(), hapax::http::RateError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate {
    attempts: u32,
    per: Duration,
}

/// The maximum span: longer than any retry, and safe to add to any point in time.
const PER_MAX: Duration = Duration::from_secs(366 * 86_400);

/// Units from long to short, in milliseconds.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

impl Rate {
    /// `attempts` in each span of `per`.
    ///
    /// # Errors
    /// [`RateError`] when either is zero, and when the span is shorter than a millisecond or longer than a year.
    pub fn new(attempts: u32, per: Duration) -> Result<Self, RateError> {
        if attempts == 0 {
            return Err(RateError::Attempts);
        }
        if !(Duration::from_millis(1)..=PER_MAX).contains(&per) {
            return Err(RateError::Span);
        }
        Ok(Self { attempts, per })
    }

    /// The number of attempts.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The span.
    pub fn per(&self) -> Duration {
        self.per
    }

    /// The interval between attempts, rounded down: all of them fit into the span.
    pub(super) fn interval(&self) -> Duration {
        (self.per / self.attempts).max(Duration::from_nanos(1))
    }
}

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (attempts, span) = text.split_once('/').ok_or(RateError::Slash)?;
        Self::new(
            digits(attempts.trim()).ok_or(RateError::Attempts)?,
            parse_span(span.trim()).ok_or(RateError::Span)?,
        )
    }
}

fn parse_span(text: &str) -> Option<Duration> {
    let unit_at = text.find(|character: char| !character.is_ascii_digit())?;
    let (count, unit) = text.split_at(unit_at);
    let (_, millis) = UNITS.iter().find(|(name, _)| *name == unit)?;
    digits::<u64>(count)?.checked_mul(*millis).map(Duration::from_millis)
}

/// A number without a sign.
fn digits<T: FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

impl fmt::Display for Rate {
    /// In the longest unit that is exact; fractions of a millisecond are dropped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.per.as_millis();
        let (unit, length) = UNITS
            .into_iter()
            .find(|(_, length)| millis.is_multiple_of((*length).into()))
            .unwrap_or(("ms", 1));
        write!(f, "{}/{}{unit}", self.attempts, millis / u128::from(length))
    }
}

/// Why a text or two numbers are not a rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RateError {
    /// There is no `/`.
    #[error("the rate has no /; write attempts and a duration, such as 10/1m")]
    Slash,
    /// The number of attempts is out of range.
    #[error("the rate's attempts are not a number from 1 to 4294967295")]
    Attempts,
    /// The span is invalid or out of range.
    #[error("the rate's duration is not an integer with ms, s, m, h or d, from a millisecond to a year")]
    Span,
}

#[cfg(test)]
mod tests;
