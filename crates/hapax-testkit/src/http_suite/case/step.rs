//! [`Step`]: one action, and what is expected of its result.

use serde::Deserialize;

use super::{Expect, Send, Span, StoreFault};

/// One step of a case.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "StepFile")]
pub struct Step {
    /// The name of its answer in later steps.
    pub name: Option<String>,
    /// The action.
    pub action: Action,
    /// What is expected of its result.
    pub expect: Expect,
}

/// The action of a step.
#[derive(Clone, Debug)]
pub enum Action {
    /// Sends a request and waits for its answer.
    Send(Box<Send>),
    /// Sends a request and leaves it open.
    Background {
        /// Its name in later steps.
        name: String,
        /// The request.
        send: Box<Send>,
    },
    /// Waits for the answer to an open request.
    Await(String),
    /// Closes the connection of an open request.
    HangUp(String),
    /// Waits until the origin has been executed so many times.
    UntilRuns(usize),
    /// Releases the answers that the origin holds.
    Release,
    /// Lets time pass on the store's clock.
    Advance(Span),
    /// Begins a graceful shutdown.
    Drain,
    /// Changes how the store behaves.
    Store(StoreFault),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepFile {
    name: Option<String>,
    send: Option<Box<Send>>,
    #[serde(default)]
    background: bool,
    r#await: Option<String>,
    hang_up: Option<String>,
    until_runs: Option<usize>,
    #[serde(default)]
    release: bool,
    advance: Option<Span>,
    #[serde(default)]
    drain: bool,
    store: Option<StoreFault>,
    #[serde(default)]
    expect: Expect,
}

impl TryFrom<StepFile> for Step {
    type Error = String;

    fn try_from(file: StepFile) -> Result<Self, String> {
        let StepFile { name, send, background, expect, .. } = file;
        let send = match (send, background, &name) {
            (Some(send), true, Some(name)) => Some(Action::Background { name: name.clone(), send }),
            (Some(_), true, None) => return Err("`background` needs a `name`".into()),
            (None, true, _) => return Err("`background` without `send`".into()),
            (send, false, _) => send.map(Action::Send),
        };
        let actions = [
            send,
            file.r#await.map(Action::Await),
            file.hang_up.map(Action::HangUp),
            file.until_runs.map(Action::UntilRuns),
            file.release.then_some(Action::Release),
            file.advance.map(Action::Advance),
            file.drain.then_some(Action::Drain),
            file.store.map(Action::Store),
        ];
        let mut actions = actions.into_iter().flatten();
        let (Some(action), None) = (actions.next(), actions.next()) else {
            return Err("a step does one thing: send, await, hang_up, until_runs, release, advance, drain \
                        or store"
                .into());
        };
        let is_answered = matches!(action, Action::Send(_) | Action::Await(_));
        if !is_answered && expect != (Expect { runs: expect.runs, ..Expect::default() }) {
            return Err("`expect`: this step has no answer, only `runs` can be checked".into());
        }
        Ok(Self { name, action, expect })
    }
}
