//! `hapax client`: lists the open calls of a journal of `hapax-client`, and finishes them.

use std::error::Error as StdError;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hapax_admin::time::{brief, rfc3339};
use hapax_client::{Client, Error, JournalError, OpenCall, OpenCallState, Response, Resumed};
use hapax_core::Timestamp;
use hapax_core::key::key_hash;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use crate::args::{ClientCommand, Resume};
use crate::failure::{Code, Failure};
use crate::output::Output;

/// As in a client without settings.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const HEADER: [&str; 5] = ["STATE", "METHOD", "URL", "KEY HASH", "AGE"];

pub(crate) async fn run(command: &ClientCommand, output: Output) -> Result<(), Failure> {
    let ClientCommand::Resume(resume) = command;
    let client = client(resume)?;
    let calls = client.open_calls();
    if resume.list {
        return list(&calls, output);
    }
    let resumed = client.resume().await;
    let left = client.open_calls();
    let ends: Vec<CallEnd<'_>> = calls.iter().map(|call| CallEnd::of(call, &resumed, &left)).collect();
    if output.json {
        let calls: Vec<Value> = ends.iter().map(CallEnd::document).collect();
        output.document(&json!({ "calls": calls }))?;
    } else if ends.is_empty() {
        output.text("the journal has no open calls")?;
    }
    for end in ends.iter().filter(|_| !output.json) {
        output.text(&end.text())?;
    }
    check_all(&ends)
}

fn client(resume: &Resume) -> Result<Client, Failure> {
    let http = reqwest::Client::builder()
        .default_headers(headers(&resume.header)?)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .connect_timeout(CONNECT_TIMEOUT)
        .build()
        .map_err(|error| Failure::new(Code::Failed, "cannot set up TLS").because(error))?;
    let client = Client::builder().http(http).existing_journal(&resume.journal).build();
    client.map_err(|error| unopened(error, &resume.journal))
}

fn headers(lines: &[String]) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    for line in lines {
        let field = line.split_once(':').and_then(|(name, value)| {
            let mut value = HeaderValue::from_str(value.trim()).ok()?;
            value.set_sensitive(true);
            Some((name.trim().parse::<HeaderName>().ok()?, value))
        });
        // The line may be a credential.
        let (name, value) = field.ok_or_else(|| {
            Failure::new(Code::InputInvalid, "a value of --header is not a header")
                .hint("write it as 'Authorization: Bearer TOKEN'")
        })?;
        headers.append(name, value);
    }
    Ok(headers)
}

fn unopened(error: Error, journal: &str) -> Failure {
    let (code, hint) = match &error {
        Error::Journal(JournalError::Url { .. }) => (Code::InputInvalid, "name it as file:DIR"),
        Error::Journal(JournalError::Missing { .. }) => {
            (Code::JournalMissing, "name the directory that the client was given, as file:DIR")
        }
        Error::Journal(JournalError::InUse { .. }) => (
            Code::JournalInUse,
            "stop the process that uses it, or let that process resume the calls itself, with `client.resume()`",
        ),
        Error::Journal(JournalError::Damaged { .. } | JournalError::Foreign { .. }) => {
            (Code::JournalDamaged, "keep a copy of the directory; nothing was changed and nothing was sent")
        }
        _ => (Code::JournalUnavailable, "fix what the causes name, then try again; nothing was sent"),
    };
    let failure = Failure::new(code, format!("cannot open the journal {journal}")).hint(hint);
    match error {
        Error::Journal(error) => failure.because(error),
        other => failure.because(other),
    }
}

fn list(calls: &[OpenCall], output: Output) -> Result<(), Failure> {
    if output.json {
        return output.document(&json!({ "calls": calls.iter().map(document).collect::<Vec<_>>() }));
    }
    let rows = calls.iter().map(|call| {
        let [state, method, url] = [state(call.state), call.method.as_str(), &call.url].map(str::to_owned);
        vec![state, method, url, hash(call), brief(age(call))]
    });
    output.table(Some(&HEADER), rows.collect())
}

/// How a call ended, and what the journal has of it.
struct CallEnd<'a> {
    call: &'a OpenCall,
    /// None for a call that was not sent.
    result: Option<&'a Result<Response, Error>>,
    /// None once it is out of the journal.
    left: Option<OpenCallState>,
}

impl<'a> CallEnd<'a> {
    fn of(call: &'a OpenCall, resumed: &'a [Resumed], left: &[OpenCall]) -> Self {
        let is_it = |other: &OpenCall| {
            (&other.key, &other.method, &other.url) == (&call.key, &call.method, &call.url)
        };
        let result = resumed.iter().find(|resumed| is_it(&resumed.call)).map(|resumed| &resumed.result);
        let left = left.iter().find(|other| is_it(other)).map(|other| other.state);
        Self { call, result, left }
    }

    fn outcome(&self) -> &'static str {
        match (self.left, self.result) {
            (Some(left), _) => state(left),
            (None, Some(Ok(response))) if response.replayed() => "replayed",
            (None, Some(Ok(_))) => "answered",
            (None, _) => "refused",
        }
    }

    fn is_finished(&self) -> bool {
        self.left.is_none() && matches!(self.result, Some(Ok(_)))
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

fn check_all(ends: &[CallEnd<'_>]) -> Result<(), Failure> {
    let unfinished = ends.iter().filter(|end| !end.is_finished()).count();
    if unfinished == 0 {
        return Ok(());
    }
    let message = format!("{unfinished} of {} calls in the journal have no final answer", ends.len());
    let denied =
        ends.iter().any(|end| end.left == Some(OpenCallState::Open) && matches!(end.result, Some(Ok(_))));
    let hint = if denied {
        "give the credentials of the service with --header 'Authorization: …', and run the command again"
    } else {
        "run the command again later for open calls; for uncertain ones find out at the service what happened"
    };
    Err(Failure::new(Code::CallsOpen, message).hint(hint))
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
