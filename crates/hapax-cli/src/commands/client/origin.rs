//! Which calls of a journal one run is about: a credential goes to one origin only.

use std::collections::BTreeSet;

use hapax_client::{OpenCall, OpenCallState};
use reqwest::Url;

use crate::args::Resume;
use crate::failure::{Code, Failure};

/// The calls to the origin of `--origin`, or all.
pub(super) fn select(calls: Vec<OpenCall>, resume: &Resume) -> Result<Vec<OpenCall>, Failure> {
    let all = origins(&calls, |_| true);
    if let Some(chosen) = &resume.origin {
        let chosen = parse(chosen)?;
        if !all.is_empty() && !all.contains(&chosen) {
            return Err(Failure::new(
                Code::InputInvalid,
                format!("the journal has no open calls to {chosen}"),
            )
            .hint(format!("its calls are to {}", listed(&all))));
        }
        return Ok(calls.into_iter().filter(|call| origin(&call.url).as_ref() == Some(&chosen)).collect());
    }
    let sent = origins(&calls, |state| state == OpenCallState::Open);
    if sent.len() > 1 && !resume.header.is_empty() {
        return Err(Failure::new(Code::InputInvalid, "--header would send its value to several origins")
            .hint(format!("choose one with --origin: {}", listed(&sent))));
    }
    Ok(calls)
}

fn origins(calls: &[OpenCall], counts: impl Fn(OpenCallState) -> bool) -> BTreeSet<String> {
    calls.iter().filter(|call| counts(call.state)).filter_map(|call| origin(&call.url)).collect()
}

fn parse(text: &str) -> Result<String, Failure> {
    origin(text).ok_or_else(|| {
        Failure::new(Code::InputInvalid, "the value of --origin is not an origin")
            .hint("write it as https://pay.example or http://127.0.0.1:8080")
    })
}

/// Scheme, host and port; none for a URL that has no origin.
fn origin(url: &str) -> Option<String> {
    let origin = Url::parse(url).ok()?.origin();
    origin.is_tuple().then(|| origin.ascii_serialization())
}

fn listed(origins: &BTreeSet<String>) -> String {
    origins.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}
