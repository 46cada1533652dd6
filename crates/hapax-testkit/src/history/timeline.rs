//! [`Violation`]: the rule that a key breaks, with its timeline: its calls in order.

use std::error::Error;
use std::fmt;

use hapax_core::transition::{Answer, Command};
use hapax_core::{Claim, Fence, Lookup, RecordId, Timestamp};

use super::{Call, CallEnd, Effect, GivenOutcome, Reply, Request};

/// Which rule a history breaks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Rule {
    /// No order of the calls explains their answers.
    NotLinearisable,
    /// The calls are too concurrent to be checked; use fewer concurrent ones, or fewer without an answer.
    TooConcurrent,
    /// An effect without a granted claim.
    EffectWithoutClaim,
    /// An effect of an attempt that had already completed or released its claim.
    EffectAfterEnd,
    /// Two effects of one attempt.
    EffectTwiceUnderOneFence,
    /// A second effect although no call had freed the key.
    SecondEffect,
    /// Callers got two outcomes while the first was still kept.
    TwoOutcomes,
    /// A caller got an outcome that was never recorded.
    OutcomeNeverRecorded,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotLinearisable => "no order of the calls explains their answers",
            Self::TooConcurrent => "too many concurrent calls to be checked",
            Self::EffectWithoutClaim => "an effect without a granted claim",
            Self::EffectAfterEnd => "an effect after its attempt had ended",
            Self::EffectTwiceUnderOneFence => "two effects under one fence",
            Self::SecondEffect => "a second effect that nothing explains",
            Self::TwoOutcomes => "two outcomes given for one operation",
            Self::OutcomeNeverRecorded => "an outcome given that was never recorded",
        })
    }
}

/// A broken rule, with the timeline of the key that breaks it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    rule: Rule,
    id: RecordId,
    lines: Vec<Line>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Line {
    order: u64,
    at: Timestamp,
    text: String,
    breaks: bool,
}

impl Violation {
    /// `calls` break `rule`; `culprit` is the order of the answer with which they do.
    pub(super) fn new<'a>(
        rule: Rule,
        id: RecordId,
        calls: impl Iterator<Item = &'a Call>,
        culprit: Option<u64>,
    ) -> Self {
        let lines = calls
            .map(|call| {
                let ended = call.end.as_ref().map(|(when, _)| when.order);
                Line {
                    order: call.invoked.order,
                    at: call.invoked.at,
                    text: describe_call(call, culprit.unwrap_or(u64::MAX)),
                    breaks: culprit.is_some() && ended == culprit,
                }
            })
            .collect();
        Self { rule, id, lines }
    }

    pub(super) fn with_effects<'a>(mut self, effects: impl Iterator<Item = &'a Effect>) -> Self {
        self.lines.extend(effects.map(|effect| Line {
            order: effect.when.order,
            at: effect.when.at,
            text: format!(
                "{}: EFFECT of attempt {} ({:?})",
                effect.process, effect.fence.attempt, effect.fence.nonce
            ),
            breaks: false,
        }));
        self
    }

    pub(super) fn with_outcomes<'a>(mut self, outcomes: impl Iterator<Item = &'a GivenOutcome>) -> Self {
        self.lines.extend(outcomes.map(|outcome| Line {
            order: outcome.when.order,
            at: outcome.when.at,
            text: format!("{}: a caller gets {}", outcome.process, brief(&outcome.recorded)),
            breaks: false,
        }));
        self
    }

    /// The rule that is broken.
    pub fn rule(&self) -> Rule {
        self.rule
    }

    /// The key that breaks it.
    pub fn id(&self) -> RecordId {
        self.id
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = self.lines.clone();
        lines.sort();
        write!(f, "{} (key {})", self.rule, self.id)?;
        let start = lines.first().map_or(Timestamp::default(), |line| line.at);
        for line in lines {
            let mark = if line.breaks { '>' } else { ' ' };
            write!(f, "\n{mark} {:>4} {:>8}ms  {}", line.order, line.at.since(start).as_millis(), line.text)?;
        }
        Ok(())
    }
}

impl Error for Violation {}

/// A call in a few words, as known just after the event `until`.
fn describe_call(call: &Call, until: u64) -> String {
    let end = match &call.end {
        Some((when, _)) if when.order > until => "not answered yet".to_owned(),
        Some((when, CallEnd::Answered(reply))) => {
            format!("{} (answered at {})", describe_reply(reply), when.order)
        }
        Some((_, CallEnd::NotApplied)) => "failed, not applied".to_owned(),
        Some((_, CallEnd::Unknown)) => "outcome unknown".to_owned(),
        None => "never answered".to_owned(),
    };
    format!("{}: {} -> {end}", call.process, describe_request(&call.request))
}

fn describe_request(request: &Request) -> String {
    match request {
        Request::Get(_) => "get".to_owned(),
        Request::Sweep => "sweep".to_owned(),
        Request::Command(command) => match command {
            Command::Claim(ask) => format!(
                "claim {:?} for {:?} of {:?}, on lapse {:?}",
                ask.nonce, ask.lease, ask.fingerprint, ask.on_lapse
            ),
            Command::Renew(lease) => format!("renew {:?}", lease.fence.nonce),
            Command::Complete { lease, done, retention } => {
                format!("complete {:?} with {} for {retention:?}", lease.fence.nonce, brief(done))
            }
            Command::Release { lease, .. } => format!("release {:?}", lease.fence.nonce),
            Command::Abandon { lease, reason } => format!("abandon {:?} as {reason:?}", lease.fence.nonce),
            Command::Settle { settlement, .. } => {
                format!("settle {:?} by {:?}: {:?}", settlement.attempt, settlement.nonce, settlement.verdict)
            }
            Command::Delete { nonce, .. } => format!("delete {nonce:?}"),
        },
    }
}

fn describe_reply(reply: &Reply) -> String {
    match reply {
        Reply::Answer(Answer::Claim(Claim::Acquired(lease))) => {
            format!("Acquired, attempt {}", lease.fence.attempt)
        }
        Reply::Answer(Answer::Claim(Claim::Replay { recorded, .. })) => {
            format!("Replay of {}", brief(recorded))
        }
        Reply::Answer(Answer::Claim(claim)) => format!("{claim:?}"),
        Reply::Answer(Answer::Fenced(fenced)) => format!("{fenced:?}"),
        Reply::Answer(Answer::Settled(settled)) => format!("{settled:?}"),
        Reply::Answer(Answer::Deleted(deleted)) => format!("{deleted:?}"),
        Reply::Lookup(Lookup::Found { record, .. }) => {
            let Fence { nonce, attempt } = record.fence;
            format!("Found {} by attempt {attempt} ({nonce:?})", record.state())
        }
        Reply::Lookup(lookup) => format!("{lookup:?}"),
        Reply::Swept => "swept".to_owned(),
    }
}

/// A prefix of an outcome: what tests record may be printed.
fn brief(recorded: &hapax_core::Recorded) -> String {
    let shown = &recorded.payload[..recorded.payload.len().min(24)];
    format!("{:?} {:?}", recorded.class, String::from_utf8_lossy(shown))
}
