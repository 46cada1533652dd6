//! What is known of a request before its claim.
//!
//! The order of checks: early data, when the request was first sent, authorisation, principal, the record where it refuses
//! regardless of the body, the body, its digest, a key in the body, the fingerprint, limits.

use std::sync::atomic::Ordering;
use std::time::SystemTime;

use bytes::Bytes;
use hapax_core::{Fingerprint, Key, Recorded, ScopedKey};
use http::header::{CONTENT_LENGTH, EXPECT};
use http::{HeaderName, Response, request};
use http_body::Body;
use tokio::time::Instant;

use super::refusal;
use super::responder::Responder;
use crate::engine::Refusal;
use crate::engine::cache::Recalled;
use crate::http::body::read::{self, BufferedBody, ReadFault};
use crate::http::canonical::{self, header::Fields};
use crate::http::digest;
use crate::http::fingerprint::{self, BodyRefused, FingerprintInput};
use crate::http::layer::path_of_parts;
#[cfg(feature = "webhook")]
use crate::http::layer::target_of_parts;
use crate::http::limits::{LimitExceeded, OpenClaim};
use crate::http::policy::{EarlyData, KeyMode};
use crate::http::problem::{Code, Problem};
use crate::http::protection::Protection;
use crate::http::scope::{self, Endpoint};
#[cfg(feature = "webhook")]
use crate::http::webhook::Delivery;
use crate::observe;

static EARLY_DATA: HeaderName = HeaderName::from_static("early-data");

/// A request with everything that a claim needs.
pub(super) struct Asked {
    pub(super) read: BufferedBody,
    pub(super) key: Key,
    pub(super) scoped: ScopedKey,
    pub(super) fingerprint: Fingerprint,
    /// None where limits on new operations do not apply: there is a record that answers.
    pub(super) open: Option<OpenClaim>,
}

/// What preparing a request came to.
pub(super) enum Prepared {
    Asked(Box<Asked>),
    /// Memory holds the outcome.
    Recalled(Recorded),
    /// There is no key in the body either, and none is required.
    Unkeyed(BufferedBody),
    /// A layer around this one has claimed the same key for this request, or runs it unprotected.
    Claimed(BufferedBody),
}

/// Why a request goes no further.
pub(super) enum Stop {
    Refused(Problem),
    /// The authorisation call has answered the request.
    Answered(Box<Response<Bytes>>),
}

impl From<Problem> for Stop {
    fn from(problem: Problem) -> Self {
        Self::Refused(problem)
    }
}

impl Responder {
    pub(super) async fn prepare<B>(
        &mut self,
        parts: &request::Parts,
        body: B,
        key: Option<Key>,
    ) -> Result<Prepared, Stop>
    where
        B: Body<Data = Bytes> + Send,
    {
        let (policy, fields) = (self.policy(), Fields::of(&parts.headers));
        if policy.early_data == EarlyData::Refuse && fields.lines(&EARLY_DATA).any(|value| value == "1") {
            return Err(Problem::of(Code::TooEarly, "send this again after the TLS handshake").into());
        }
        if policy.key_source.first_sent.is_some() {
            let now = SystemTime::now();
            policy.key_source.check_first_sent(&parts.headers, now).map_err(refusal::first_sent)?;
        }
        // First the authorisation: its answer may name the caller.
        let authorised = match &policy.authorise {
            Some(authorise) => authorise(parts).await.map_err(|answer| Stop::Answered(Box::new(answer)))?,
            None => None,
        };
        let path = canonical::path(path_of_parts(parts));
        let scope = scope::scope_of(&policy.scope, parts, &path, authorised.as_deref())
            .map_err(refusal::anonymous)?;
        // Where only the body holds the key, the scope waits for it.
        let known = match &key {
            Some(key) => Ok(ScopedKey::new(scope, key)),
            None => Err(scope),
        };
        let claimed = Protection::of(&parts.extensions).map(Protection::id);
        if let Ok(known) = &known
            && claimed != Some(known.id)
            && self.may_refuse_before_body(fields)
        {
            Box::pin(self.refuse_before_body(known)).await?;
        }

        let announced = read::announced_length(fields.first(&CONTENT_LENGTH));
        let read = read::read(body, announced, policy.body_bytes_max, &self.shared.budget).await;
        let read = read.map_err(|fault| self.not_read(fault))?;
        digest::verify(fields, &read.data).map_err(refusal::digest)?;
        let found = match self.key_after_body(key, parts, &read.data)? {
            Some(key) => Some((known.unwrap_or_else(|scope| ScopedKey::new(scope, &key)), key)),
            None => {
                let derived = self.derived_key(parts, &read.data)?;
                self.is_key_derived = derived.is_some();
                derived.zip(known.err()).map(|(key, scope)| {
                    (ScopedKey::new(scope::of_derived(&scope, &parts.method, &path), &key), key)
                })
            }
        };
        let policy = self.policy();
        let Some((scoped, key)) = found else {
            return match policy.key {
                KeyMode::Required => Err(policy.key_missing().into()),
                KeyMode::Optional | KeyMode::Off => Ok(Prepared::Unkeyed(read)),
            };
        };
        if self.is_key_derived {
            observe::key_derived(&self.route().label);
        }
        if let Some(observer) = &self.observer {
            observer.set_record(scoped.id);
        }
        if claimed == Some(scoped.id) {
            return Ok(Prepared::Claimed(read));
        }
        let fingerprint = self.fingerprint(parts, fields, &path, &read.data).map_err(refusal::body)?;

        let now = Instant::now();
        self.shared.limits.attempt(&policy.limits, &scoped.id, now).map_err(refusal::limited)?;
        match self.engine().recall(&scoped.id, &fingerprint) {
            Some(Recalled::Replay(recorded)) => return Ok(Prepared::Recalled(recorded)),
            Some(Recalled::Mismatch) => return Err(refusal::of(&Refusal::Mismatch).about(scoped.id).into()),
            None => {}
        }
        let open = match self.begin(&scoped, now) {
            Ok(open) => Some(open),
            // Limits on new operations do not withhold the outcomes of earlier ones.
            Err(limited) => match Box::pin(self.engine().remembers(&scoped.id)).await {
                Ok(true) => None,
                _ => return Err(refusal::limited(limited).into()),
            },
        };
        Ok(Prepared::Asked(Box::new(Asked { read, key, scoped, fingerprint, open })))
    }

    fn fingerprint(
        &self,
        parts: &request::Parts,
        fields: Fields<'_>,
        path: &str,
        body: &Bytes,
    ) -> Result<Fingerprint, BodyRefused> {
        let policy = self.policy();
        // Where all endpoints share a scope, one must not be answered with the outcome of another.
        if policy.scope.endpoint == Endpoint::Fingerprint && policy.fingerprint.input == FingerprintInput::Key
        {
            return Ok(fingerprint::of_endpoint(&parts.method, path));
        }
        fingerprint::of_request(&policy.fingerprint, &parts.method, path, parts.uri.query(), fields, body)
    }

    /// A process that drains does not wait for bodies: an incomplete one is for another process.
    fn not_read(&self, fault: ReadFault) -> Problem {
        if fault == ReadFault::CutShort && self.engine().draining.load(Ordering::SeqCst) {
            return refusal::of(&Refusal::Draining);
        }
        refusal::read(fault, self.policy().body_bytes_max)
    }

    /// Counts an operation of its caller, unless that has too many.
    fn begin(&self, scoped: &ScopedKey, now: Instant) -> Result<OpenClaim, LimitExceeded> {
        let (limits, rules) = (&self.shared.limits, &self.policy().limits);
        let principal = scoped.scope.principal_hash().copied();
        limits.may_store(rules, principal, now)?;
        limits.open(rules, principal, scoped.id)
    }

    /// Whether a client waits for a `100 Continue` before it sends the body, and the record alone may decide (T-01, T-02).
    fn may_refuse_before_body(&self, fields: Fields<'_>) -> bool {
        let is_asking = fields
            .first(&EXPECT)
            .is_some_and(|expects| expects.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        is_asking && self.policy().engine.wait.is_zero() && self.policy().reconcile.is_none()
    }

    /// Refuses such a request where its record does so whatever the body is.
    async fn refuse_before_body(&self, known: &ScopedKey) -> Result<(), Problem> {
        match self.engine().refusal_before_claim(known.id, &self.policy().engine).await {
            Some(refusal) => Err(refusal::of(&refusal).about(known.id)),
            None => Ok(()),
        }
    }

    fn key_after_body(
        &self,
        key: Option<Key>,
        parts: &request::Parts,
        body: &[u8],
    ) -> Result<Option<Key>, Problem> {
        let policy = self.policy();
        #[cfg(feature = "webhook")]
        if let Some(webhook) = &policy.webhook {
            let delivery = Delivery { target: target_of_parts(parts), headers: &parts.headers, body };
            return webhook.verify(delivery, SystemTime::now()).map(Some).map_err(refusal::webhook);
        }
        let found = policy.key_source.in_body(key, &parts.headers, body);
        found.map_err(|fault| Problem::of(Code::KeyInvalid, fault.detail()))
    }

    fn derived_key(&self, parts: &request::Parts, body: &[u8]) -> Result<Option<Key>, Problem> {
        let derived = self.policy().key_source.derive(&parts.headers, body);
        derived.map_err(|error| Problem::of(Code::KeyInvalid, error.to_string()))
    }
}
