//! One covered request, from its key to its answer.
//!
//! The order of judgement: early data, when it was first sent, whether the caller may, whose it is, what is known of it
//! already, the body, its digest, the key that only the body holds, the fingerprint, limits; then the claim. What
//! fails before the claim has executed nothing and stored nothing.

mod behind;
mod refusal;
mod unprotected;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use bytes::Bytes;
use hapax_core::key::PrincipalHash;
use hapax_core::{Fingerprint, Key, Reason, RecordId, Recorded, ScopedKey};
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, ORIGIN, TRAILER};
use http::{
    Extensions, HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, request, response,
};
use http_body::Body;
use parking_lot::Mutex;
use tokio::time::Instant;
use tower_service::Service;

use self::unprotected::PassingAs;
use super::IdempotencyKey;
use super::body::read::{self, Collected, Read, ReadFault};
use super::body::{RequestBody, ResponseBody};
use super::canonical::{
    self,
    header::{self, Fields},
};
use super::capture;
use super::classify::{self, Outcome};
use super::fingerprint::{BodyRefused, What};
#[cfg(feature = "webhook")]
use super::layer::target_of_parts;
use super::layer::{Route, Shared, path_of_parts};
use super::limits::{Limited, OpenClaim};
use super::policy::{Classifier, EarlyData, KeyMode, OnStoreError};
use super::problem::{self, Code, Problem};
use super::rules::Rules;
use super::scope::Endpoint;
#[cfg(feature = "webhook")]
use super::webhook::Delivery;
use super::witness::Witness;
use super::{digest, fingerprint, grpc, scope};
use crate::engine::cache::Known;
use crate::engine::{Context, Ended, Execution, Finish, Job, Refusal, not_kept};
use crate::observe;

/// Marks a response whose outcome could not be stored yet.
static RECORDED: HeaderName = HeaderName::from_static("idempotency-recorded");
static EARLY_DATA: HeaderName = HeaderName::from_static("early-data");

/// One request and the route it is for.
#[derive(Clone)]
pub(super) struct Exchange {
    shared: Arc<Shared>,
    route: usize,
    /// Where somebody wants to know what becomes of it.
    witness: Option<Witness>,
}

/// A request of which everything is known that a claim needs.
struct Asked {
    read: Read,
    key: Key,
    scoped: ScopedKey,
    fingerprint: Fingerprint,
    /// None where limits on what is new do not apply: there is a record that answers.
    open: Option<OpenClaim>,
}

/// What preparing a request came to.
enum Prepared {
    Asked(Box<Asked>),
    /// What became of it is known already.
    Known(Recorded),
    /// There is no key in the body either, and none is needed.
    Unkeyed(Read),
    /// A layer around this one has claimed the same key for this very request, or lets it pass.
    Claimed(Read),
}

/// Why a request goes no further.
enum Stop {
    Refused(Problem),
    /// Whoever was asked whether the caller may do this gave an answer of its own.
    Answered(Box<Response<Bytes>>),
}

/// A response, and how its request is counted.
struct Answer<R> {
    response: Response<ResponseBody<R>>,
    counted: observe::Outcome,
}

impl From<Problem> for Stop {
    fn from(problem: Problem) -> Self {
        Self::Refused(problem)
    }
}

impl Exchange {
    pub(super) fn new(shared: Arc<Shared>, route: usize, extensions: &Extensions) -> Self {
        Self { shared, route, witness: extensions.get().cloned() }
    }

    fn route(&self) -> &Route {
        self.shared.route(self.route)
    }

    fn policy(&self) -> &Rules {
        &self.route().policy
    }

    /// Answers one request, by executing it or from what was recorded.
    #[expect(clippy::manual_async_fn, reason = "an `async fn` has room for its arguments twice")]
    pub(super) fn answer<S, B, R>(
        self,
        mut inner: S,
        parts: request::Parts,
        body: B,
        key: Option<Key>,
    ) -> impl Future<Output = Result<Response<ResponseBody<R>>, S::Error>> + Send
    where
        S: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Send + 'static,
        B: Body<Data = Bytes> + Send + 'static,
        R: Body<Data = Bytes> + Send + 'static,
    {
        async move {
            // What seldom happens, and what comes later, is in boxes of its own: small ones are had and given back quickly.
            match self.prepare(&parts, body, key).await {
                Ok(Prepared::Asked(asked)) => Box::pin(self.execute(inner, Box::new(parts), asked)).await,
                Ok(Prepared::Known(recorded)) => Ok(self.replay(&parts.headers, recorded)),
                Ok(Prepared::Unkeyed(read)) => {
                    let is_claimed = parts.extensions.get::<Context>().is_some();
                    let mut response =
                        Box::pin(inner.call(Request::from_parts(parts, RequestBody::read(read)))).await?;
                    if !is_claimed {
                        classify::strip(response.headers_mut());
                        return Ok(self.passed(response));
                    }
                    Ok(response.map(ResponseBody::passed))
                }
                Ok(Prepared::Claimed(read)) => {
                    let response =
                        Box::pin(inner.call(Request::from_parts(parts, RequestBody::read(read)))).await?;
                    Ok(response.map(ResponseBody::passed))
                }
                Err(Stop::Refused(problem)) => Ok(self.refuse(&problem)),
                Err(Stop::Answered(mut response)) => {
                    self.count(observe::Outcome::Refused);
                    response.extensions_mut().get_or_insert(Outcome::Release);
                    Ok(response.map(|body| ResponseBody::whole(body, None)))
                }
            }
        }
    }

    #[expect(clippy::manual_async_fn, reason = "an `async fn` has room for its arguments twice")]
    fn prepare<B>(
        &self,
        parts: &request::Parts,
        body: B,
        key: Option<Key>,
    ) -> impl Future<Output = Result<Prepared, Stop>> + Send
    where
        B: Body<Data = Bytes> + Send,
    {
        async move {
            let (policy, fields) = (self.policy(), Fields::of(&parts.headers));
            if policy.early_data == EarlyData::Refuse && fields.lines(&EARLY_DATA).any(|value| value == "1") {
                return Err(Problem::of(Code::TooEarly, "send this again after the TLS handshake").into());
            }
            if policy.key_source.first_sent.is_some() {
                let now = SystemTime::now();
                policy.key_source.check_first_sent(&parts.headers, now).map_err(refusal::first_sent)?;
            }
            // First whether the caller may: the answer may say who it is.
            let authorised = match &policy.authorise {
                Some(authorise) => {
                    authorise(parts).await.map_err(|answer| Stop::Answered(Box::new(answer)))?
                }
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
            let passing = || parts.extensions.get().map(|PassingAs(id)| *id);
            let claimed = parts.extensions.get().map(Context::id).or_else(passing);
            if let Ok(known) = &known
                && claimed != Some(known.id)
                && self.is_told_before_the_body(fields)
            {
                Box::pin(self.spare_the_body(known)).await?;
            }

            let announced = read::announced_length(fields.first(&CONTENT_LENGTH));
            let read = read::read(body, announced, policy.body_bytes_max, &self.shared.budget).await;
            let read = read.map_err(|fault| self.not_read(fault))?;
            digest::verify(fields, &read.data).map_err(refusal::digest)?;
            let Some(key) = self.key_after_body(key, parts, &read.data)? else {
                return match policy.key {
                    KeyMode::Required => Err(policy.key_missing().into()),
                    KeyMode::Optional | KeyMode::Off => Ok(Prepared::Unkeyed(read)),
                };
            };
            let scoped = known.unwrap_or_else(|scope| ScopedKey::new(scope, &key));
            if let Some(witness) = &self.witness {
                witness.is_about(scoped.id);
            }
            if claimed == Some(scoped.id) {
                return Ok(Prepared::Claimed(read));
            }
            let fingerprint = self.fingerprint(parts, fields, &path, &read.data).map_err(refusal::body)?;

            let now = Instant::now();
            self.shared.limits.attempt(&policy.limits, &scoped.id, now).map_err(refusal::limited)?;
            if let Some(Known::Replay(recorded)) = self.shared.hapax.engine.recall(&scoped.id, &fingerprint) {
                return Ok(Prepared::Known(recorded));
            }
            let open = match self.begin(&scoped, now) {
                Ok(open) => Some(open),
                // Limits on what a caller begins do not withhold what became of what it began earlier.
                Err(limited) => match Box::pin(self.shared.hapax.engine.remembers(&scoped.id)).await {
                    Ok(true) => None,
                    _ => return Err(refusal::limited(limited).into()),
                },
            };
            Ok(Prepared::Asked(Box::new(Asked { read, key, scoped, fingerprint, open })))
        }
    }

    fn fingerprint(
        &self,
        parts: &request::Parts,
        fields: Fields<'_>,
        path: &str,
        body: &Bytes,
    ) -> Result<Fingerprint, BodyRefused> {
        let policy = self.policy();
        // A scope that all endpoints share must not answer one with what another did, also where nothing else counts.
        if policy.scope.endpoint == Endpoint::Fingerprint && policy.fingerprint.what == What::Key {
            return Ok(fingerprint::of_endpoint(&parts.method, path));
        }
        fingerprint::of_request(&policy.fingerprint, &parts.method, path, parts.uri.query(), fields, body)
    }

    /// A process that drains does not wait for bodies. What it has not got is for another one.
    fn not_read(&self, fault: ReadFault) -> Problem {
        if fault == ReadFault::CutShort && self.shared.hapax.engine.draining.load(Ordering::SeqCst) {
            return refusal::of(&Refusal::Draining);
        }
        refusal::read(fault, self.policy().body_bytes_max)
    }

    /// Counts an operation of its caller's, unless it is one too many.
    fn begin(&self, scoped: &ScopedKey, now: Instant) -> Result<OpenClaim, Limited> {
        let (limits, rules) = (&self.shared.limits, &self.policy().limits);
        let principal = scoped.scope.principal_hash().copied();
        limits.may_store(rules, principal, now)?;
        limits.open(rules, principal, scoped.id)
    }

    /// Whether a client asks before it sends the body, and the record alone may hold the answer (T-01, T-02).
    fn is_told_before_the_body(&self, fields: Fields<'_>) -> bool {
        let is_asking = fields
            .first(&EXPECT)
            .is_some_and(|expects| expects.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        is_asking && self.policy().engine.wait.is_zero() && self.policy().reconcile.is_none()
    }

    /// Tells such a client what can be told without the body.
    async fn spare_the_body(&self, known: &ScopedKey) -> Result<(), Problem> {
        match self.shared.hapax.engine.foresee(known.id, &self.policy().engine).await {
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

    async fn execute<S, B, R>(
        &self,
        inner: S,
        mut parts: Box<request::Parts>,
        asked: Box<Asked>,
    ) -> Result<Response<ResponseBody<R>>, S::Error>
    where
        S: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Send + 'static,
        B: Body<Data = Bytes> + Send + 'static,
        R: Body<Data = Bytes> + Send + 'static,
    {
        let policy = self.policy();
        grpc::lift_deadline(&mut parts.headers);
        let job = Box::new(Job {
            expires_at: policy.engine.forgets_at(&asked.key),
            key: asked.scoped.clone(),
            fingerprint: asked.fingerprint,
            policy: policy.engine,
            reconcile: policy.reconcile.clone(),
            route: Some(self.route().label.clone()),
        });
        let said = said_by(&parts.headers, policy.replay.echo_key.as_ref());
        let spare = (policy.on_store_error == OnStoreError::Pass)
            .then(|| Arc::new(Mutex::new(Some((inner.clone(), parts.clone(), asked.read.copy())))));
        let kept = spare.clone();
        let id = job.key.id;
        let exchange = self.clone();
        let work = move |context| {
            // It runs, so it will not have to pass.
            drop(kept.and_then(|kept| kept.lock().take()));
            exchange.run(inner, parts, asked, context)
        };
        let mut response = match self.shared.hapax.engine.execute(job, work).await {
            Ok(Execution::Ran { value: Ok(answer), recorded }) => {
                self.count(if recorded { answer.counted } else { observe::Outcome::Unrecorded });
                let mut response = answer.response;
                if !recorded {
                    response.headers_mut().insert(RECORDED.clone(), HeaderValue::from_static("false"));
                }
                policy.replay.first(&said, response.headers_mut());
                response
            }
            Ok(Execution::Ran { value: Err(error), .. }) => {
                self.count(observe::Outcome::Uncertain);
                return Err(error);
            }
            Ok(Execution::Replayed(recorded)) => return Ok(self.replay(&said, recorded)),
            Err(refusal) => {
                return match (refusal, spare.and_then(|spare| spare.lock().take())) {
                    (Refusal::Store(error), Some(spare)) => Box::pin(self.pass(spare, id, error)).await,
                    (refusal, _) => Ok(self.refuse(&refusal::of(&refusal).about(id))),
                };
            }
        };
        self.mark(&mut response, "accepted");
        Ok(response)
    }

    /// Runs the inner service on a request whose key was claimed.
    async fn run<S, B, R>(
        self,
        mut inner: S,
        mut parts: Box<request::Parts>,
        asked: Box<Asked>,
        context: Context,
    ) -> Ended<Result<Box<Answer<R>>, S::Error>>
    where
        S: Service<Request<RequestBody<B>>, Response = Response<R>>,
        R: Body<Data = Bytes>,
    {
        let Asked { read, key, scoped, open: _open, .. } = *asked;
        let origin = parts.headers.get(ORIGIN).cloned();
        let id = context.id();
        parts.extensions.insert(IdempotencyKey(key));
        parts.extensions.insert(context);
        match inner.call(Request::from_parts(*parts, RequestBody::read(read))).await {
            Ok(response) => {
                let (answer, finish) = self.conclude(response, origin.as_ref(), Some(id)).await;
                if let Finish::Pin(recorded) = &finish {
                    self.count_stored(recorded, scoped.scope.principal_hash().copied());
                }
                Ended { value: Ok(Box::new(answer)), finish }
            }
            // The inner service gave up: whether anything happened is not known.
            Err(error) => Ended { value: Err(error), finish: Finish::Uncertain(Reason::NoAnswer) },
        }
    }

    fn count_stored(&self, recorded: &Recorded, principal: Option<PrincipalHash>) {
        let policy = self.policy();
        if policy.limits.stored_bytes_max.is_some() {
            let (limits, bytes) = (&self.shared.limits, recorded.len() as u64);
            limits.stored(&policy.limits, principal, bytes, policy.engine.retention, Instant::now());
        }
    }

    /// Reads the handler's response and decides what becomes of its record, which is `id` where there is one.
    async fn conclude<R>(
        &self,
        mut response: Response<R>,
        origin: Option<&HeaderValue>,
        id: Option<RecordId>,
    ) -> (Answer<R>, Finish)
    where
        R: Body<Data = Bytes>,
    {
        let policy = self.policy();
        let (mut parts, collected) = match self.restated(&mut response, id) {
            Some(restated) => {
                let (parts, data) = restated.into_parts();
                (parts, Collected::Whole { data, trailers: None })
            }
            None => {
                let (parts, body) = response.into_parts();
                let collected = self.collect(&parts, body).await;
                (parts, collected)
            }
        };
        let (outcome, recorded, body) = match collected {
            Collected::Whole { data, mut trailers } => {
                let outcome = self.outcome(&parts, &data, trailers.as_deref());
                let mut recorded =
                    capture::record(&policy.replay, origin, &parts, &data, trailers.as_deref());
                if policy.classifier == Classifier::Grpc
                    && let Some((_, class)) = grpc::outcome(&policy.outcomes, &parts, trailers.as_deref())
                {
                    recorded.class = class;
                }
                if policy.classifier != Classifier::Grpc && !parts.headers.contains_key(TRAILER) {
                    announce(trailers.as_deref(), &mut parts.headers);
                }
                // What is recorded is a copy. Sent instead of what was read, it is the only one.
                let data = if capture::has_content(parts.status) { recorded.payload.clone() } else { data };
                if outcome == Outcome::Uncertain {
                    self.forbid_retries(&mut parts.headers, trailers.as_deref_mut());
                }
                (outcome, recorded, ResponseBody::whole(data, trailers))
            }
            Collected::TooLarge { read, body } => {
                let outcome = self.outcome(&parts, &[], None);
                let recorded = capture::record(&policy.replay, None, &parts, &[], None);
                if outcome == Outcome::Uncertain {
                    self.forbid_retries(&mut parts.headers, None);
                }
                (outcome, not_kept(&recorded), ResponseBody::streamed(read, body))
            }
            Collected::CutShort => {
                let response = self.problem(&Problem { reference: id, ..refusal::cut_short() });
                let finish = Finish::Uncertain(Reason::Truncated);
                return (Answer { response, counted: observe::Outcome::Uncertain }, finish);
            }
        };
        let (finish, counted) = match outcome {
            Outcome::Pin => (Finish::Pin(recorded), observe::Outcome::Ran),
            Outcome::Release => {
                let is_unreachable = parts.extensions.get() == Some(&Code::UpstreamUnavailable);
                let counted =
                    if is_unreachable { observe::Outcome::Unreachable } else { observe::Outcome::Failed };
                (Finish::Release(Some(recorded)), counted)
            }
            Outcome::Uncertain => {
                (Finish::Uncertain(classify::reason(&mut parts)), observe::Outcome::Uncertain)
            }
        };
        parts.extensions.remove::<Outcome>();
        (Answer { response: Response::from_parts(parts, body), counted }, finish)
    }

    async fn collect<R>(&self, parts: &response::Parts, body: R) -> Collected<R>
    where
        R: Body<Data = Bytes>,
    {
        if is_endless(parts) {
            return Collected::TooLarge { read: Bytes::new(), body: Box::pin(body) };
        }
        let announced = read::announced_length(header::first(&parts.headers, &CONTENT_LENGTH))
            .filter(|_| capture::has_content(parts.status));
        let bytes_max = self.shared.hapax.engine.outcome_bytes_max(&self.policy().engine);
        read::collect(body, announced, bytes_max).await
    }

    fn outcome(&self, parts: &response::Parts, body: &[u8], trailers: Option<&HeaderMap>) -> Outcome {
        let policy = self.policy();
        let seen = match policy.classifier {
            Classifier::Status => None,
            Classifier::GraphQl => classify::graphql(body),
            Classifier::Grpc => grpc::outcome(&policy.outcomes, parts, trailers).map(|(outcome, _)| outcome),
        };
        match seen {
            Some(seen) => classify::overruled(parts, seen),
            None => classify::judge(&policy.outcomes, parts),
        }
    }

    fn replay<R>(&self, said: &HeaderMap, recorded: Recorded) -> Response<ResponseBody<R>> {
        let policy = self.policy();
        self.count(observe::Outcome::Replayed);
        let mut response = match capture::replay(&policy.replay, said, recorded) {
            Ok(replayed) => {
                let (mut headers, mut trailers) = (replayed.headers, replayed.trailers);
                let is_grpc = policy.classifier == Classifier::Grpc;
                if !is_grpc {
                    announce(trailers.as_deref(), &mut headers);
                }
                let is_failed = is_grpc && grpc::is_failed(&headers, trailers.as_deref());
                if is_failed || problem::is_retried(replayed.status) {
                    self.forbid_retries(&mut headers, trailers.as_deref_mut());
                }
                let mut response = Response::new(ResponseBody::whole(replayed.body, trailers));
                *response.status_mut() = replayed.status;
                *response.headers_mut() = headers;
                response
            }
            Err(_not_replayable) => self.problem(&refusal::result_unavailable()),
        };
        self.mark(&mut response, "accepted");
        response
    }

    /// Tells a client that retries by itself that it need not: what it gets is final, or waits to be settled.
    fn forbid_retries(&self, headers: &mut HeaderMap, trailers: Option<&mut HeaderMap>) {
        let policy = self.policy();
        if policy.classifier != Classifier::Grpc || !grpc::forbid_retries(headers, trailers) {
            policy.refusals.hint(false, headers);
        }
    }

    /// Refuses the request and counts it.
    pub(super) fn refuse<R>(&self, problem: &Problem) -> Response<ResponseBody<R>> {
        self.count(refusal::counted_as(problem));
        let mut response = self.problem(problem);
        self.mark(&mut response, "rejected");
        response
    }

    /// A refusal as the route says it, with a word to a layer in front.
    fn problem<R>(&self, problem: &Problem) -> Response<ResponseBody<R>> {
        let policy = self.policy();
        let mut response = match policy.classifier {
            Classifier::Grpc => grpc::refusal(problem),
            Classifier::Status | Classifier::GraphQl => problem.response(&policy.refusals),
        };
        response.extensions_mut().insert(problem.outcome());
        response.map(|body| ResponseBody::whole(body, None))
    }

    /// Tells whether the key was honoured, where the dialect has a field for it.
    fn mark<R>(&self, response: &mut Response<R>, result: &'static str) {
        if let Some(name) = &self.policy().result_header {
            response.headers_mut().insert(name.clone(), HeaderValue::from_static(result));
        }
    }

    fn count(&self, outcome: observe::Outcome) {
        self.route().requests.count(outcome);
        if let Some(witness) = &self.witness {
            witness.ended(&self.route().label, outcome);
        }
    }
}

/// What a replay looks at of the request it answers.
fn said_by(headers: &HeaderMap, echoed: Option<&HeaderName>) -> HeaderMap {
    let mut said = HeaderMap::new();
    for name in [&ORIGIN, &ACCEPT_ENCODING].into_iter().chain(echoed) {
        for value in headers.get_all(name) {
            said.append(name, value.clone());
        }
    }
    said
}

/// Names the trailers in `Trailer`: HTTP/1.1 sends only those that it names.
fn announce(trailers: Option<&HeaderMap>, headers: &mut HeaderMap) {
    let Some(trailers) = trailers else { return };
    let names: Vec<&str> = trailers.keys().map(HeaderName::as_str).collect();
    if let Ok(names) = HeaderValue::try_from(names.join(", ")) {
        // A map that can take no more goes without it.
        let _full = headers.try_insert(TRAILER, names);
    }
}

/// A stream of events has no end to wait for, and neither has a connection that changes its protocol.
fn is_endless(parts: &response::Parts) -> bool {
    let is_events = |value: &HeaderValue| {
        let value = value.as_bytes();
        value.get(..17).is_some_and(|start| start.eq_ignore_ascii_case(b"text/event-stream"))
    };
    parts.status == StatusCode::SWITCHING_PROTOCOLS || parts.headers.get(CONTENT_TYPE).is_some_and(is_events)
}
