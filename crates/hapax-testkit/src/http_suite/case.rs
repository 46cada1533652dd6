//! [`Case`]: a case file as types. `spec/cases/http/README.md` defines the terms.
//!
//! It owns what is well formed. It knows nothing of sockets and of how a case is played.

mod content;
mod expect;
mod span;
mod step;

use bytes::Bytes;
use serde::Deserialize;

use super::surface::{Feature, Settings, StoreFault};

pub use content::Content;
pub use expect::{Expect, Seen};
pub use span::Span;
pub use step::{Action, Step};

/// A header line: name and value.
pub type Line = (String, String);

/// One case: a route's settings, the origin's scripts, and steps with their expectations.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The file's name without its ending.
    pub id: String,
    /// The rule that the case tests, as in `K-06`.
    pub rule: String,
    /// Whether the rule permits or prevents what happens.
    pub kind: Kind,
    /// What it tests, in a sentence or two.
    pub about: String,
    /// The features that a surface must have.
    #[serde(default)]
    pub needs: Vec<Feature>,
    /// The options of the route.
    #[serde(default)]
    pub settings: Settings,
    /// The scripts of the origin's first, second, … execution; the last one repeats.
    #[serde(default, rename = "answer")]
    pub answers: Vec<Script>,
    /// The steps, in order.
    #[serde(rename = "step")]
    pub steps: Vec<Step>,
}

/// Whether a case's rule permits or prevents what happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The rule permits it.
    Admits,
    /// The rule prevents it. A service without the layer fails the case.
    Refuses,
}

/// How the origin answers one execution.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// 201 when not given.
    pub status: Option<u16>,
    /// The header lines, in order.
    #[serde(default)]
    pub headers: Vec<Line>,
    /// Empty when not given.
    #[serde(default)]
    pub body: Content,
    /// Sent after the body.
    #[serde(default)]
    pub trailers: Vec<Line>,
    /// Whether the answer is held until a `release` step.
    #[serde(default)]
    pub hold: bool,
    /// Whether the length is not announced.
    #[serde(default)]
    pub stream: bool,
    /// How the execution fails.
    pub fail: Option<Failure>,
}

/// How an execution fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Failure {
    /// The handler panics.
    Panic,
    /// The body breaks off after its first half.
    Cut,
}

/// A request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Send {
    /// `POST` when not given.
    pub method: String,
    /// Path and query; `/orders` when not given.
    pub path: String,
    /// The authority; the surface's own address when not given.
    pub host: Option<String>,
    /// Short for a first header line `Idempotency-Key` with this value.
    pub key: Option<String>,
    /// The header lines, in order. `{now}` in a value stands for the time of sending, as HTTP spells it.
    pub headers: Vec<Line>,
    /// Short for a body of this text and a header line `Content-Type: application/json`.
    pub json: Option<String>,
    /// The body.
    pub body: Option<Content>,
    /// Sent after the body, which is then chunked.
    pub trailers: Vec<Line>,
    /// The body goes in chunks (HTTP/2: frames) of so many bytes and without a length.
    pub chunked: Option<usize>,
    /// Only so many bytes of the body are sent, then the sending side is closed.
    pub cut: Option<usize>,
    /// The body is sent only after `100 Continue`.
    pub expect_continue: bool,
    /// `1.0` to speak HTTP/1.0.
    pub version: Option<String>,
    /// The whole request as it goes over the wire, instead of everything else.
    pub raw: Option<String>,
    /// The webhook scheme that the request is signed for.
    pub sign: Option<Sign>,
    /// So many concurrent copies are sent; every answer must be as expected.
    pub times: usize,
    /// Retried while the answer is the problem `in-progress`.
    pub patient: bool,
}

impl Default for Send {
    fn default() -> Self {
        Self {
            method: "POST".into(),
            path: "/orders".into(),
            host: None,
            key: None,
            headers: Vec::new(),
            json: None,
            body: None,
            trailers: Vec::new(),
            chunked: None,
            cut: None,
            expect_continue: false,
            version: None,
            raw: None,
            sign: None,
            times: 1,
            patient: false,
        }
    }
}

impl Send {
    /// The header lines of the case: the key, those given, those of `json`.
    pub(super) fn lines(&self) -> Vec<Line> {
        let key = self.key.iter().map(|key| ("Idempotency-Key".to_owned(), key.clone()));
        let json = self.json.iter().map(|_| ("Content-Type".to_owned(), "application/json".to_owned()));
        key.chain(self.headers.iter().cloned()).chain(json).collect()
    }

    /// The body, if there is one.
    pub(super) fn content(&self) -> Option<Bytes> {
        let json = self.json.as_ref().map(|json| Bytes::from(json.clone()));
        json.or_else(|| self.body.as_ref().map(|body| body.0.clone()))
    }

    /// Whether only a hand-written HTTP/1 request can be sent like this.
    fn is_raw(&self) -> bool {
        self.raw.is_some() || self.expect_continue || self.version.is_some()
    }
}

/// How a webhook is signed at the moment when it is sent.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sign {
    /// The scheme.
    pub scheme: Scheme,
    /// The secret, as the settings spell it.
    pub secret: String,
    /// The message's id, where the scheme signs it.
    #[serde(default)]
    pub id: String,
    /// The age of the timestamp that the message carries.
    #[serde(default)]
    pub age: Span,
}

/// A scheme of webhook signatures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// Standard Webhooks: `webhook-id`, `webhook-timestamp`, `webhook-signature`.
    Standard,
    /// `X-Hub-Signature-256`.
    Github,
    /// `Stripe-Signature`.
    Stripe,
    /// `X-Shopify-Hmac-Sha256`, and `X-Shopify-Webhook-Id` for the id.
    Shopify,
    /// `X-Slack-Request-Timestamp`, `X-Slack-Signature`.
    Slack,
}

impl Case {
    /// Checks what types cannot express. Returns what is malformed.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.steps.is_empty() {
            return Err("`step`: there is none".into());
        }
        let mut open = Vec::new();
        let mut answered: Vec<&str> = Vec::new();
        for (at, step) in self.steps.iter().enumerate() {
            self.check_step(step, &mut open, &mut answered)
                .map_err(|reason| format!("step {}: {reason}", at + 1))?;
        }
        match open.first() {
            Some(name) => Err(format!("`{name}` is left open: say `await` or `hang_up`")),
            None => Ok(()),
        }
    }

    fn check_step<'a>(
        &self,
        step: &'a Step,
        open: &mut Vec<&'a str>,
        answered: &mut Vec<&'a str>,
    ) -> Result<(), String> {
        let needed = match &step.action {
            Action::Send(send) if send.is_raw() => Some(Feature::Raw),
            Action::Send(send) if send.sign.is_some() => Some(Feature::Webhook),
            Action::Advance(_) => Some(Feature::Clock),
            Action::Drain => Some(Feature::Drain),
            Action::Store(_) => Some(Feature::StoreFaults),
            _ => None,
        };
        if let Some(feature) = needed.filter(|feature| !self.needs.contains(feature)) {
            return Err(format!("`needs` does not say \"{feature}\""));
        }
        if let Some(name) = step.expect.same_as.as_deref().filter(|name| !answered.contains(name)) {
            return Err(format!("`same_as`: no earlier answer is called `{name}`"));
        }
        match &step.action {
            Action::Background { name, .. } => open.push(name),
            Action::Await(name) | Action::HangUp(name) => {
                let at = open.iter().position(|open| open == name);
                open.remove(at.ok_or_else(|| format!("no open request is called `{name}`"))?);
                answered.push(name);
            }
            _ => answered.extend(step.name.as_deref()),
        }
        Ok(())
    }
}
