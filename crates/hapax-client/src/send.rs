//! The attempts of one call: sends, reads the answer, asks `retry.rs`, pauses. The only file that waits.

mod attempt;
mod redirect;

use std::time::{Duration, SystemTime};

use http::StatusCode;
use tokio::time::Instant;

use crate::age::Moment;
use crate::error::{BoxError, Error, Last, Limit, MismatchFoundBy, UncertainCause};
use crate::observe;
use crate::plan::Plan;
use crate::policy;
use crate::problem::{Meaning, Problem, RESULT_UNAVAILABLE};
use crate::response::Response;
use crate::retry::{self, Again, Situation, Verdict};

use self::attempt::Answer;
pub(crate) use self::attempt::{Failure, FailureKind, Transport};

/// Sends the request of the plan until it has a final answer or reaches a limit.
pub(crate) async fn send(plan: &Plan, transport: &mut impl Transport) -> Result<Response, Error> {
    plan.settings.budget.deposit();
    let mut sending =
        Sending { plan, began: Instant::now(), attempts: 0, retries: 0, polls: 0, sent: Sent::No };
    let result = sending.run(transport).await;
    observe::call_ended(&result);
    result
}

/// What the server may have of the call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sent {
    /// No request was received.
    No,
    /// Every request that may have been received was answered; an answer may hide an effect.
    Answered,
    /// A request may have been received, and its answer was lost on its way or to a gateway.
    Unanswered,
}

struct Sending<'a> {
    plan: &'a Plan,
    began: Instant,
    attempts: u32,
    retries: u32,
    polls: u32,
    sent: Sent,
}

impl Sending<'_> {
    async fn run(&mut self, transport: &mut impl Transport) -> Result<Response, Error> {
        let mut last = Last::Nothing;
        loop {
            let lifetime_left = self.plan.lifetime_left(Moment::now());
            if lifetime_left.is_zero() {
                return Err(self.stopped(Limit::Lifetime, last));
            }
            if self.time_left().is_zero() {
                return Err(self.stopped(Limit::Deadline, last));
            }
            self.attempts += 1;
            observe::attempt_began(self.attempts);
            let timeout = self.plan.settings.attempt_timeout.min(self.time_left()).min(lifetime_left);
            let (again, after, reason) = match attempt::run(self.plan, transport, timeout).await {
                Ok(answer) => match self.judge_answer(answer)? {
                    Judged::Final(response) => return Ok(response),
                    Judged::Repeat { again, after, reason, response } => {
                        last = Last::Response(response);
                        (again, after, reason)
                    }
                },
                Err(failure) => {
                    let reason = self.judge_failure(&failure);
                    let FailureKind::Repeatable(_) = failure.kind else {
                        return Err(self.failed(failure));
                    };
                    last = Last::Failure(failure.source);
                    (Again::Retry, None, reason)
                }
            };
            match self.next(again, after) {
                Ok(pause) => {
                    observe::attempt_follows(self.attempts, reason, pause);
                    tokio::time::sleep(pause).await;
                }
                Err(limit) if again == Again::Poll && limit != Limit::Lifetime => {
                    return Err(self.in_progress(limit));
                }
                Err(limit) => return Err(self.stopped(limit, last)),
            }
        }
    }

    /// The pause before the next attempt, which is then counted and paid for.
    fn next(&mut self, again: Again, after: Option<Duration>) -> Result<Duration, Limit> {
        let counter = match again {
            Again::Retry => self.retries,
            Again::Poll => self.polls,
        };
        let situation = Situation {
            policy: &self.plan.settings.retry,
            unrepeatable: self.plan.unrepeatable(self.sent > Sent::No),
            earlier: counter,
            time_left: self.time_left(),
            lifetime_left: self.plan.lifetime_left(Moment::now()),
            random: policy::random(),
        };
        let pause = retry::next(again, after, &situation)?;
        match again {
            Again::Retry if !self.plan.settings.budget.withdraw() => return Err(Limit::Budget),
            Again::Retry => self.retries += 1,
            Again::Poll => self.polls += 1,
        }
        Ok(pause)
    }

    fn judge_answer(&mut self, answer: Answer) -> Result<Judged, Error> {
        let Answer { response: inner, problem } = answer;
        let (status, key) = (inner.status(), self.plan.key.clone());
        let verdict = retry::of_response(status, inner.headers(), problem.as_ref(), SystemTime::now());
        let response = Response { inner, key: key.clone(), attempts: self.attempts };
        let is_running =
            problem.as_ref().is_some_and(|problem| problem.meaning() == Some(Meaning::InProgress));
        let nothing_ran = problem.as_ref().is_some_and(|problem| problem.is_own && !is_running);
        if !nothing_ran {
            let by_gateway = retry::is_of_gateway(status) && !is_running;
            self.sent = self.sent.max(if by_gateway { Sent::Unanswered } else { Sent::Answered });
        }
        match verdict {
            Verdict::Final
                if self.is_doubtful() && retry::is_refused_in_front(status, response.headers()) =>
            {
                Err(self.refused_later(status, None))
            }
            Verdict::Final => Ok(Judged::Final(response)),
            Verdict::Retry { after } => {
                Ok(Judged::Repeat { again: Again::Retry, after, reason: "status", response })
            }
            Verdict::InProgress { after } => {
                Ok(Judged::Repeat { again: Again::Poll, after, reason: "in_progress", response })
            }
            Verdict::ToldToStop if is_running => Err(self.in_progress(Limit::Told)),
            Verdict::ToldToStop => Err(self.stopped(Limit::Told, Last::Response(response))),
            Verdict::Uncertain => Err(self.uncertain(
                UncertainCause::Server,
                problem.and_then(|problem| problem.operation),
                None,
            )),
            Verdict::Mismatch => Err(Error::Mismatch { key, by: MismatchFoundBy::Server }),
            Verdict::Refused => {
                let problem: Box<Problem> = Box::new(problem.unwrap_or_default());
                if self.is_doubtful() && problem.code() != RESULT_UNAVAILABLE {
                    return Err(self.refused_later(status, Some(&problem)));
                }
                Err(Error::Refused { key, status, problem })
            }
        }
    }

    /// Whether an answer to an earlier attempt was lost: a refusal of this one says nothing about it.
    fn is_doubtful(&self) -> bool {
        let may_have_effect = self.plan.key.is_some() && !self.plan.head.method().is_safe();
        may_have_effect && (self.sent == Sent::Unanswered || self.plan.is_continued)
    }

    /// The error of a call whose answer was lost, and of which a later attempt was refused.
    fn refused_later(&self, status: StatusCode, problem: Option<&Problem>) -> Error {
        let cause = match problem.map(Problem::code) {
            Some("key-expired") => UncertainCause::Lifetime,
            _ => UncertainCause::Transport,
        };
        let refusal = match problem {
            Some(problem) => format!("a later attempt was refused ({status}): {problem}"),
            None => format!("a later attempt was answered {status}"),
        };
        self.uncertain(cause, problem.and_then(|problem| problem.operation.clone()), Some(refusal.into()))
    }

    /// Notes what the server may have received, and names the failure.
    fn judge_failure(&mut self, failure: &Failure) -> &'static str {
        if failure.may_have_been_received() {
            self.sent = Sent::Unanswered;
        }
        tracing::debug!(attempt = self.attempts, error = %failure.source, "the attempt failed");
        failure.reason()
    }

    fn time_left(&self) -> Duration {
        self.plan.settings.deadline.saturating_sub(self.began.elapsed())
    }

    /// The error of a call that ends by a limit.
    fn stopped(&self, limit: Limit, last: Last) -> Error {
        let source = |last| match last {
            Last::Failure(source) => Some(source),
            Last::Response(response) => {
                Some(format!("the last attempt was answered {}", response.status()).into())
            }
            Last::Nothing => None,
        };
        if limit == Limit::Lifetime {
            return self.uncertain(UncertainCause::Lifetime, None, source(last));
        }
        let is_answer = matches!(last, Last::Response(_));
        let is_lost = self.sent == Sent::Unanswered || (self.sent == Sent::Answered && !is_answer);
        if is_lost && !self.plan.head.method().is_safe() {
            // What the server said not to retry is not resumed either.
            let is_told = limit == Limit::Told;
            let cause = if is_told { UncertainCause::Server } else { UncertainCause::Transport };
            return self.uncertain(cause, None, source(last));
        }
        Error::Exhausted { key: self.plan.key.clone(), limit, attempts: self.attempts, last: Box::new(last) }
    }

    /// The error of a failure after which the request is not sent again.
    fn failed(&self, failure: Failure) -> Error {
        match failure.kind {
            FailureKind::Invalid if self.sent == Sent::No => Error::Request(failure.source),
            _ => self.uncertain(UncertainCause::Transport, None, Some(failure.source)),
        }
    }

    fn in_progress(&self, limit: Limit) -> Error {
        Error::InProgress { key: self.plan.key.clone(), limit, attempts: self.attempts }
    }

    fn uncertain(&self, cause: UncertainCause, operation: Option<String>, source: Option<BoxError>) -> Error {
        Error::Uncertain { key: self.plan.key.clone(), cause, operation, attempts: self.attempts, source }
    }
}

/// What an answer means for the call.
enum Judged {
    Final(Response),
    Repeat { again: Again, after: Option<Duration>, reason: &'static str, response: Response },
}
