//! What `hapax client` prints: a table of open calls, or one line for each call as it ends.

use std::error::Error as StdError;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hapax_admin::time::{brief, rfc3339};
use hapax_client::{Error, OpenCall, OpenCallState, Response, Resumed};
use hapax_core::Timestamp;
use hapax_core::key::key_hash;
use serde_json::{Value, json};

use crate::failure::{Code, Failure};
use crate::output::Output;

const HEADER: [&str; 5] = ["STATE", "METHOD", "URL", "KEY HASH", "AGE"];

/// Prints the calls as they are in the journal.
pub(super) fn list(calls: &[OpenCall], output: Output) -> Result<(), Failure> {
    if output.json {
        return output.document(&json!({ "calls": calls.iter().map(document).collect::<Vec<_>>() }));
    }
    let rows = calls.iter().map(|call| {
        let [state, method, url] = [state(call.state), call.method.as_str(), &call.url].map(str::to_owned);
        vec![state, method, url, hash(call), brief(age(call))]
    });
    output.table(Some(&HEADER), rows.collect())
}

/// How a call ended, and what the journal has of it afterwards.
pub(super) struct CallEnd<'a> {
    call: &'a OpenCall,
    /// None for a call that was not sent.
    result: Option<&'a Result<Response, Error>>,
    /// None for a call that leaves the journal.
    next_state: Option<OpenCallState>,
}

impl<'a> CallEnd<'a> {
    pub(super) fn of(resumed: &'a Resumed) -> Self {
        Self { call: &resumed.call, result: Some(&resumed.result), next_state: resumed.next_state }
    }

    pub(super) fn not_sent(call: &'a OpenCall) -> Self {
        Self { call, result: None, next_state: Some(call.state) }
    }

    fn outcome(&self) -> &'static str {
        match (self.next_state, self.result) {
            (Some(next), _) => state(next),
            (None, Some(Ok(response))) if response.replayed() => "replayed",
            (None, Some(Ok(_))) => "answered",
            (None, _) => "refused",
        }
    }

    fn is_finished(&self) -> bool {
        self.next_state.is_none() && matches!(self.result, Some(Ok(_)))
    }

    /// Whether the service may miss the credentials of the caller.
    fn is_denied(&self) -> bool {
        self.next_state == Some(OpenCallState::Open) && matches!(self.result, Some(Ok(_)))
    }

    fn text(&self) -> String {
        let OpenCall { method, url, .. } = self.call;
        let how = match self.result {
            Some(Ok(response)) => response.status().to_string(),
            Some(Err(error)) => with_causes(error),
            None => "not sent".to_owned(),
        };
        format!("{} {method} {url} (key hash {}): {how}", self.outcome(), hash(self.call))
    }

    fn document(&self) -> Value {
        let mut document = document(self.call);
        document["outcome"] = self.outcome().into();
        document["status"] = match self.result {
            Some(Ok(response)) => response.status().as_u16().into(),
            _ => Value::Null,
        };
        document["error"] = match self.result {
            Some(Err(error)) => with_causes(error).into(),
            _ => Value::Null,
        };
        document
    }
}

/// The ends of all calls, each printed as soon as it is known. With `--json` the lines are one document together.
pub(super) struct Report {
    output: Output,
    calls: usize,
    unfinished: usize,
    is_denied: bool,
}

impl Report {
    pub(super) fn begin(output: Output) -> Result<Self, Failure> {
        if output.json {
            output.text(r#"{"calls": ["#)?;
        }
        Ok(Self { output, calls: 0, unfinished: 0, is_denied: false })
    }

    /// Prints the end of a call, and flushes it.
    pub(super) fn add(&mut self, end: &CallEnd<'_>) -> Result<(), Failure> {
        let text = match (self.output.json, self.calls) {
            (false, _) => end.text(),
            (true, 0) => end.document().to_string(),
            (true, _) => format!(",{}", end.document()),
        };
        self.output.text(&text)?;
        self.calls += 1;
        self.unfinished += usize::from(!end.is_finished());
        self.is_denied |= end.is_denied();
        Ok(())
    }

    /// Fails when calls have no final answer.
    pub(super) fn end(self) -> Result<(), Failure> {
        if self.output.json {
            self.output.text("]}")?;
        } else if self.calls == 0 {
            self.output.text("the journal has no open calls")?;
        }
        if self.unfinished == 0 {
            return Ok(());
        }
        let message =
            format!("{} of {} calls in the journal have no final answer", self.unfinished, self.calls);
        let hint = if self.is_denied {
            "give the credentials of the service with --header 'Authorization: …', and run the command again"
        } else {
            "run the command again later for open calls; for uncertain ones find out at the service what happened"
        };
        Err(Failure::new(Code::CallsOpen, message).hint(hint))
    }
}

fn document(call: &OpenCall) -> Value {
    let made_at_ms = u64::try_from(since_epoch(call).as_millis()).unwrap_or(u64::MAX);
    json!({
        "state": state(call.state),
        "method": call.method.as_str(),
        "url": call.url,
        "key_hash": hash(call),
        "key_made_at": rfc3339(Timestamp::from_millis(made_at_ms)),
        "key_made_at_ms": made_at_ms,
        "age_ms": u64::try_from(age(call).as_millis()).unwrap_or(u64::MAX),
    })
}

fn state(state: OpenCallState) -> &'static str {
    match state {
        OpenCallState::Uncertain => "uncertain",
        _ => "open",
    }
}

fn hash(call: &OpenCall) -> String {
    key_hash(&call.key).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn since_epoch(call: &OpenCall) -> Duration {
    call.key_made_at.duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn age(call: &OpenCall) -> Duration {
    SystemTime::now().duration_since(call.key_made_at).unwrap_or_default()
}

fn with_causes(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
