//! `hapax client`: lists the open calls of a journal of `hapax-client`, and finishes them.

mod origin;
mod report;

use std::future::ready;
use std::time::Duration;

use hapax_client::{Client, Error, JournalError};
use http::{HeaderMap, HeaderName, HeaderValue};

use self::report::{CallEnd, Report};
use crate::args::{ClientCommand, Resume};
use crate::failure::{Code, Failure};
use crate::output::Output;

/// As in a client without settings.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) async fn run(command: &ClientCommand, output: Output) -> Result<(), Failure> {
    let ClientCommand::Resume(resume) = command;
    let client = client(resume)?;
    let calls = origin::select(client.open_calls(), resume)?;
    if resume.list {
        return report::list(&calls, output);
    }
    let mut report = Report::begin(output)?;
    for call in &calls {
        let mut is_sent = false;
        // Its call leaves the journal once the end was printed.
        let print = |resumed| {
            is_sent = true;
            ready(report.add(&CallEnd::of(&resumed)))
        };
        client.resume_call(call, print).await?;
        if !is_sent {
            report.add(&CallEnd::not_sent(call))?;
        }
    }
    report.end()
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
