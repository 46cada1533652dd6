//! [`Comparison`]: compares an answer with what was expected and describes every difference.

use bytes::Bytes;
use serde_json::Value;

use super::case::{Content, Expect, Line, Seen};
use super::origin::Execution;
use super::surface::Settings;
use super::wire::{WireResponse, lines};

/// Header fields that belong to one exchange and not to the outcome, besides the replay marker. Replays of them have
/// their own cases.
const PER_EXCHANGE: [&str; 19] = [
    "age",
    "connection",
    "content-length",
    "date",
    "idempotency-recorded",
    "keep-alive",
    "proxy-connection",
    "ratelimit-limit",
    "ratelimit-remaining",
    "ratelimit-reset",
    "retry-after",
    "server-timing",
    "set-cookie",
    "stripe-should-retry",
    "traceparent",
    "trailer",
    "transfer-encoding",
    "x-request-id",
    "x-should-retry",
];

/// The part of an answer's body that a report shows.
const SHOWN_BYTES_MAX: usize = 200;

/// One difference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Difference {
    pub(super) expected: String,
    pub(super) got: String,
}

/// The context of a comparison.
pub(super) struct Comparison<'a> {
    pub(super) expect: &'a Expect,
    /// The header field that marks a replay.
    pub(super) marker: &'a str,
    /// The answer that `same_as` names.
    pub(super) earlier: Option<&'a WireResponse>,
    /// The executions that the origin recorded.
    pub(super) executions: Vec<Execution>,
}

impl Comparison<'_> {
    /// Every difference between what was expected and `answer`.
    pub(super) fn differences(&self, answer: &WireResponse) -> Vec<Difference> {
        let expect = self.expect;
        let mut found = Differences::default();
        if let Some(status) = expect.status {
            found.compare("status", status, answer.status);
        }
        if let Some(statuses) = &expect.status_in {
            let among = statuses.contains(&answer.status);
            found.check(among, || (format!("a status of {statuses:?}"), answer.status.to_string()));
        }
        found.compare("body breaks off", expect.cut, answer.cut);
        if let Some(continued) = expect.continued {
            found.compare("asked for the body", continued, answer.continued);
        }
        if let Some(replayed) = expect.replayed {
            let marked = answer.lines(self.marker).any(|value| &value[..] == b"true");
            found.compare(&format!("replayed ({})", self.marker), replayed, marked);
        }
        fields(&mut found, "header", &answer.headers, &expect.has, &expect.lacks, &expect.headers);
        if let Some(trailers) = &expect.trailers {
            fields(&mut found, "trailer", &answer.trailers, &[], &[], trailers);
            found.compare("number of trailers", trailers.len(), answer.trailers.len());
        }
        if let Some(Content(body)) = &expect.body {
            found.check(*body == answer.body, || (shown("body", body), shown("body", &answer.body)));
        }
        for text in &expect.hides {
            let hidden = !holds(answer, text.as_bytes());
            found.check(hidden, || (format!("`{text}` nowhere in the answer"), "it is present".into()));
        }
        if let Some(wanted) = expect.retry_after {
            let whole = |value: &Bytes| value.iter().all(u8::is_ascii_digit) && !value.is_empty();
            found.compare("Retry-After in seconds", wanted, answer.lines("retry-after").any(whole));
        }
        if let Some(wanted) = expect.grpc_status {
            let status = answer.lines("grpc-status").chain(lines(&answer.trailers, "grpc-status")).next();
            let status = status.map(|status| String::from_utf8_lossy(status).into_owned());
            found.compare("grpc-status", wanted.to_string(), status.unwrap_or_else(|| "none".into()));
        }
        problem(&mut found, expect, answer);
        if let Some(earlier) = self.earlier {
            same(&mut found, self.marker, earlier, answer);
        }
        found.list.extend(self.differences_at_origin());
        if !found.list.is_empty() {
            found.list.push(Difference {
                expected: String::new(),
                got: format!("the answer was {}", summary(answer)),
            });
        }
        found.list
    }

    /// The same for the origin's executions, which do not need an answer.
    pub(super) fn differences_at_origin(&self) -> Vec<Difference> {
        let mut found = Differences::default();
        if let Some(runs) = self.expect.runs {
            found.compare("executions so far", runs, self.executions.len());
        }
        if let Some(seen) = &self.expect.seen {
            match self.executions.last() {
                Some(execution) => at_origin(&mut found, seen, execution),
                None => found.check(false, || ("an execution".into(), "the origin was never called".into())),
            }
        }
        found.list
    }
}

#[derive(Default)]
struct Differences {
    list: Vec<Difference>,
}

impl Differences {
    fn check(&mut self, holds: bool, difference: impl FnOnce() -> (String, String)) {
        if !holds {
            let (expected, got) = difference();
            self.list.push(Difference { expected, got });
        }
    }

    fn compare<T: PartialEq + std::fmt::Display>(&mut self, what: &str, expected: T, got: T) {
        self.check(expected == got, || (format!("{what}: {expected}"), format!("{what}: {got}")));
    }
}

fn fields(
    found: &mut Differences,
    kind: &str,
    fields: &[(String, Bytes)],
    has: &[String],
    lacks: &[String],
    exact: &[Line],
) {
    for name in has {
        let there = lines(fields, name).next().is_some();
        found.check(there, || (format!("{kind} {name}"), format!("no {kind} {name}")));
    }
    for name in lacks {
        if let Some(value) = lines(fields, name).next() {
            let value = String::from_utf8_lossy(value);
            found.check(false, || (format!("no {kind} {name}"), format!("{kind} {name}: {value}")));
        }
    }
    for (name, _) in exact {
        let wanted = exact.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        let wanted: Vec<String> = wanted.map(|(_, value)| value.clone()).collect();
        let got: Vec<String> =
            lines(fields, name).map(|value| String::from_utf8_lossy(value).into_owned()).collect();
        found.check(wanted == got, || {
            (format!("{kind} {name}: {wanted:?}"), format!("{kind} {name}: {got:?}"))
        });
    }
}

fn problem(found: &mut Differences, expect: &Expect, answer: &WireResponse) {
    if expect.problem.is_none() && expect.members.is_none() && expect.has_members.is_empty() {
        return;
    }
    let media = answer.lines("content-type").next().map(|value| String::from_utf8_lossy(value).into_owned());
    let is_problem = media.as_deref().is_some_and(|media| media.starts_with("application/problem+json"));
    found.check(is_problem, || ("a problem document".into(), format!("content-type: {media:?}")));
    let Ok(document) = serde_json::from_slice::<Settings>(&answer.body) else {
        found.check(false, || ("a JSON object".into(), shown("body", &answer.body)));
        return;
    };
    if let Some(code) = &expect.problem {
        let uri = document.get("type").and_then(Value::as_str).unwrap_or("(no type)");
        found.compare("problem", code.as_str(), uri.rsplit(['/', '#']).next().unwrap_or(uri));
        let status = document.get("status").and_then(Value::as_u64);
        found.compare("member status", u64::from(answer.status), status.unwrap_or_default());
    }
    for name in &expect.has_members {
        let there = document.contains_key(name);
        found.check(there, || (format!("member {name}"), format!("no member {name}")));
    }
    for (name, value) in expect.members.iter().flatten() {
        let got = document.get(name).unwrap_or(&Value::Null);
        found.check(value == got, || (format!("member {name}: {value}"), format!("member {name}: {got}")));
    }
}

fn same(found: &mut Differences, marker: &str, earlier: &WireResponse, answer: &WireResponse) {
    found.compare("status as before", earlier.status, answer.status);
    found.check(earlier.body == answer.body, || {
        (shown("body as before", &earlier.body), shown("body", &answer.body))
    });
    let (before, now) = (stored(marker, earlier), stored(marker, answer));
    found.check(before == now, || (format!("header fields as before: {before:?}"), format!("{now:?}")));
}

/// The header fields that belong to the outcome. Order counts only between lines of one name.
fn stored(marker: &str, answer: &WireResponse) -> Vec<(String, Bytes)> {
    let mut stored: Vec<_> = answer
        .headers
        .iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()))
        .filter(|(name, _)| !PER_EXCHANGE.contains(&&**name) && !name.eq_ignore_ascii_case(marker))
        .collect();
    stored.sort_by(|one, other| one.0.cmp(&other.0));
    stored
}

fn at_origin(found: &mut Differences, seen: &Seen, execution: &Execution) {
    if let Some(method) = &seen.method {
        found.compare("method at the origin", method.as_str(), execution.method.as_str());
    }
    if let Some(path) = &seen.path {
        let got = execution.uri.path_and_query().map_or("", |path| path.as_str());
        found.compare("path at the origin", path.as_str(), got);
    }
    let headers: Vec<_> = execution
        .headers
        .iter()
        .map(|(name, value)| (name.to_string(), Bytes::copy_from_slice(value.as_bytes())))
        .collect();
    fields(found, "at the origin, header", &headers, &seen.has, &seen.lacks, &seen.headers);
    if let Some(Content(body)) = &seen.body {
        let got = execution.body.clone().unwrap_or_default();
        found.check(*body == got, || (shown("body at the origin", body), shown("body at the origin", &got)));
    }
}

fn holds(answer: &WireResponse, text: &[u8]) -> bool {
    let within = |bytes: &[u8]| !text.is_empty() && bytes.windows(text.len()).any(|window| window == text);
    let fields = answer.headers.iter().chain(&answer.trailers);
    within(&answer.body) || fields.into_iter().any(|(_, value)| within(value))
}

fn summary(answer: &WireResponse) -> String {
    format!("{} {}", answer.status, shown("with body", &answer.body))
}

fn shown(what: &str, bytes: &[u8]) -> String {
    let part = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_BYTES_MAX)]);
    format!("{what} ({} bytes): {part}", bytes.len())
}

#[cfg(test)]
mod tests;
