//! [`Expect`]: what a step says about its answer.

use serde::Deserialize;

use super::{Content, Line, Settings};

/// What is expected of an answer. What is not given is not judged.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    /// The status.
    pub status: Option<u16>,
    /// One of these statuses.
    pub status_in: Option<Vec<u16>>,
    /// The last segment of the problem's `type`.
    pub problem: Option<String>,
    /// Members of the problem and their values.
    pub members: Option<Settings>,
    /// Members that the problem has, whatever their values.
    pub has_members: Vec<String>,
    /// How often the origin has been executed by now.
    pub runs: Option<usize>,
    /// Whether the answer carries the replay marker.
    pub replayed: Option<bool>,
    /// Header fields that are there.
    pub has: Vec<String>,
    /// Header fields that are not there.
    pub lacks: Vec<String>,
    /// For each name given here, its lines are these and no others, in this order.
    pub headers: Vec<Line>,
    /// The trailers, as `headers`; an empty list says that there are none.
    pub trailers: Option<Vec<Line>>,
    /// The whole body.
    pub body: Option<Content>,
    /// Texts that occur nowhere in the answer.
    pub hides: Vec<String>,
    /// Status, body and stored header fields are those of the answer to this step.
    pub same_as: Option<String>,
    /// Whether there is a `Retry-After` in whole seconds.
    pub retry_after: Option<bool>,
    /// Whether the surface asked for the body with `100 Continue`.
    pub continued: Option<bool>,
    /// Whether the body broke off.
    pub cut: bool,
    /// The number in `grpc-status`, in the header or the trailers.
    pub grpc_status: Option<u16>,
    /// What the origin saw at its last execution.
    pub seen: Option<Seen>,
}

/// What is expected of the request that the origin saw last.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Seen {
    /// The method.
    pub method: Option<String>,
    /// Path and query.
    pub path: Option<String>,
    /// Header fields that are there.
    pub has: Vec<String>,
    /// Header fields that are not there.
    pub lacks: Vec<String>,
    /// For each name given here, its lines are these and no others, in this order.
    pub headers: Vec<Line>,
    /// The whole body.
    pub body: Option<Content>,
}
