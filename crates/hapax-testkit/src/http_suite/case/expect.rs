//! [`Expect`]: what a step expects of its answer.

use serde::Deserialize;

use super::{Content, Line, Settings};

/// What is expected of an answer. Fields that are absent are not checked.
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
    /// Members that the problem has, with any value.
    pub has_members: Vec<String>,
    /// How often the origin has been executed by now.
    pub runs: Option<usize>,
    /// Whether the answer carries the replay marker.
    pub replayed: Option<bool>,
    /// Header fields that are present.
    pub has: Vec<String>,
    /// Header fields that are absent.
    pub lacks: Vec<String>,
    /// For each name given here, its lines are these and no others, in this order.
    pub headers: Vec<Line>,
    /// The trailers, as `headers`; an empty list requires that there are none.
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
    /// Whether the body is cut off.
    pub cut: bool,
    /// The number in `grpc-status`, in the header or the trailers.
    pub grpc_status: Option<u16>,
    /// The request of the origin's last execution.
    pub seen: Option<Seen>,
}

/// What is expected of the origin's last request.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Seen {
    /// The method.
    pub method: Option<String>,
    /// Path and query.
    pub path: Option<String>,
    /// Header fields that are present.
    pub has: Vec<String>,
    /// Header fields that are absent.
    pub lacks: Vec<String>,
    /// For each name given here, its lines are these and no others, in this order.
    pub headers: Vec<Line>,
    /// The whole body.
    pub body: Option<Content>,
}
