//! Plays one case against one fresh surface.
//!
//! It owns the order of events: what is sent, left open, released and checked when. `compare` decides whether an
//! answer is as expected.

use std::collections::HashMap;
use std::future::{Future, pending};
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::case::{Action, Case, Send, Step};
use super::compare::{Comparison, Difference};
use super::origin::Origin;
use super::report::Mismatch;
use super::surface::{Control, Settings, Surface};
use super::wire::{ExchangeError, Version, WireResponse, exchange, exchange_unless};

/// How long a server has to notice that its client hung up.
const NOTICE_MAX: Duration = Duration::from_secs(1);

/// The pause of a retrying client between two attempts.
const PATIENT_REST: Duration = Duration::from_millis(5);

/// Plays `case` over `version`. Returns the first step that does not meet its expectation.
pub(super) async fn play(surface: &impl Surface, case: &Case, version: Version) -> Result<(), Mismatch> {
    let origin = Origin::new(case.answers.clone());
    let running = within(surface.patience(), surface.start(&case.settings, origin.clone())).await;
    let running = match running {
        Ok(Ok(running)) => running,
        Ok(Err(error)) => return Err(Mismatch::at_start(format!("it did not start: {error}"))),
        Err(TimedOut) => return Err(Mismatch::at_start("it timed out".into())),
    };
    let mut stage = CasePlayer {
        addr: running.addr,
        version,
        patience: surface.patience(),
        origin,
        marker: marker(&case.settings),
        answers: HashMap::new(),
        open: HashMap::new(),
    };
    for (at, step) in case.steps.iter().enumerate() {
        let differences = stage.perform(step, &*running.control).await;
        if !differences.is_empty() {
            return Err(Mismatch::new(at + 1, step.name.as_deref(), differences));
        }
    }
    Ok(())
}

/// The header field that marks a replay with these settings.
fn marker(settings: &Settings) -> String {
    let option = |name| settings.get(name).and_then(serde_json::Value::as_str);
    let by_dialect = match option("dialect") {
        Some("ietf" | "stripe-v1" | "stripe-v2") => "Idempotent-Replayed",
        _ => "X-Idempotent-Replayed",
    };
    option("replay_marker").unwrap_or(by_dialect).to_owned()
}

struct TimedOut;

async fn within<T>(patience: Duration, waited_for: impl Future<Output = T>) -> Result<T, TimedOut> {
    tokio::time::timeout(patience, waited_for).await.map_err(|_| TimedOut)
}

type Exchanged = Result<WireResponse, ExchangeError>;

struct CasePlayer {
    addr: SocketAddr,
    version: Version,
    patience: Duration,
    origin: Origin,
    marker: String,
    answers: HashMap<String, WireResponse>,
    /// Requests without an answer so far.
    open: HashMap<String, OpenRequest>,
}

/// A request that was left open. Dropping it closes its connection.
struct OpenRequest {
    task: JoinSet<Exchanged>,
    leave: oneshot::Sender<()>,
}

impl CasePlayer {
    async fn perform(&mut self, step: &Step, control: &dyn Control) -> Vec<Difference> {
        match &step.action {
            Action::Send(send) => {
                let exchanged = within(self.patience, self.send(send)).await;
                self.until_called(step).await;
                return self.check_all(step, send.cut.is_some(), exchanged);
            }
            Action::Await(name) => {
                let exchanged = within(self.patience, self.answer_to(name)).await;
                self.until_called(step).await;
                return self.check_all(step, false, exchanged.map(|exchanged| vec![exchanged]));
            }
            Action::Background { name, send } => self.leave_open(name, send),
            Action::HangUp(name) => self.hang_up(name).await,
            Action::UntilRuns(runs) => {
                if within(self.patience, self.origin.until_runs(*runs)).await.is_err() {
                    return self.timed_out(&format!("execution {runs} to begin"));
                }
            }
            Action::Release => self.origin.release(),
            Action::Advance(span) => control.advance(span.0).await,
            Action::Drain => control.drain().await,
            Action::Store(fault) => control.store(*fault).await,
        }
        self.comparison(step).differences_at_origin()
    }

    /// Waits until the origin was called as often as expected: a client may get a timeout before a slow origin has
    /// read its request. The number of calls is checked after that.
    async fn until_called(&self, step: &Step) {
        if let Some(runs) = step.expect.runs {
            let _ = within(self.patience, self.origin.until_runs(runs)).await;
        }
    }

    async fn send(&self, send: &Send) -> Vec<Exchanged> {
        let once = async || loop {
            let exchanged = exchange(self.addr, self.version, send).await;
            let again = send.patient && exchanged.as_ref().is_ok_and(is_in_progress);
            if !again {
                return exchanged;
            }
            tokio::time::sleep(PATIENT_REST).await;
        };
        join_all((0..send.times).map(|_| once())).await
    }

    fn leave_open(&mut self, name: &str, send: &Send) {
        let (addr, version, send) = (self.addr, self.version, send.clone());
        let (leave, left) = oneshot::channel::<()>();
        let mut task = JoinSet::new();
        task.spawn(async move {
            // The sender is dropped only together with this task, so an error means that no client left.
            let left = async {
                if left.await.is_err() {
                    pending().await
                }
            };
            exchange_unless(left, addr, version, &send).await
        });
        self.open.insert(name.to_owned(), OpenRequest { task, leave });
    }

    /// Closes the connection. The server gets a moment to notice, so that the next step finds it without its client;
    /// a server that does not close its side is waited for no longer.
    async fn hang_up(&mut self, name: &str) {
        let Some(OpenRequest { mut task, leave }) = self.open.remove(name) else {
            return;
        };
        if leave.send(()).is_ok() {
            let _ = within(NOTICE_MAX, task.join_next()).await;
        }
    }

    async fn answer_to(&mut self, name: &str) -> Exchanged {
        let joined = match self.open.get_mut(name) {
            Some(open) => open.task.join_next().await,
            None => None,
        };
        self.open.remove(name);
        match joined {
            Some(Ok(exchanged)) => exchanged,
            Some(Err(error)) => Err(ExchangeError::because("the client", error)),
            None => Err(ExchangeError::because("the client", format!("no open request is called `{name}`"))),
        }
    }

    fn check_all(
        &mut self,
        step: &Step,
        is_cut: bool,
        exchanged: Result<Vec<Exchanged>, TimedOut>,
    ) -> Vec<Difference> {
        let Ok(exchanged) = exchanged else {
            return self.timed_out("an answer");
        };
        // A server may close the connection of a truncated request without a response.
        let may_be_unanswered = is_cut && step.expect.status.is_none() && step.expect.problem.is_none();
        for exchanged in exchanged {
            let differences = match &exchanged {
                Ok(answer) => self.comparison(step).differences(answer),
                Err(_) if may_be_unanswered => self.comparison(step).differences_at_origin(),
                Err(error) => vec![Difference { expected: "an answer".into(), got: error.to_string() }],
            };
            if !differences.is_empty() {
                return differences;
            }
            let name = match &step.action {
                Action::Await(name) => Some(name),
                _ => step.name.as_ref(),
            };
            if let (Some(name), Ok(answer)) = (name, exchanged) {
                self.answers.insert(name.clone(), answer);
            }
        }
        Vec::new()
    }

    fn timed_out(&self, what: &str) -> Vec<Difference> {
        vec![Difference { expected: what.into(), got: format!("nothing within {:?}", self.patience) }]
    }

    fn comparison<'a>(&'a self, step: &'a Step) -> Comparison<'a> {
        let earlier = step.expect.same_as.as_ref().and_then(|name| self.answers.get(name));
        Comparison {
            expect: &step.expect,
            marker: &self.marker,
            earlier,
            executions: self.origin.executions(),
        }
    }
}

fn is_in_progress(answer: &WireResponse) -> bool {
    const CODE: &[u8] = b"in-progress\"";
    answer.status == 409 && answer.body.windows(CODE.len()).any(|window| window == CODE)
}
