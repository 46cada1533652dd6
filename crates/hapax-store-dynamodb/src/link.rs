//! [`Link`]: one call of the service at a time, signed, bounded and judged.
//!
//! A call is sent again only where the service itself said that it did nothing: it is busy, or does not believe the time
//! of the signature; or where no byte of it was written. An answer that is lost is told to the caller, who asks again
//! with the same nonce.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hapax_core::{RecordId, StoreError};
use http_body_util::Full;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout_at};

use crate::config::Options;
use crate::connection::{Connections, NotConnected, Unanswered, exchange};
use crate::credentials::{Ambient, CredentialsSource};
use crate::error::{Answered, Effect, OpenError, Refusal};
use crate::item::{self, Held};
use crate::seen::Seen;
use crate::sign::{self, CONTENT_TYPE};
use crate::time::StoreTime;

/// What the names of all actions begin with.
const TARGET: &str = "DynamoDB_20120810.";

/// The first pause before a busy service is asked again; it doubles each time.
const PAUSE_FIRST: Duration = Duration::from_millis(20);

/// One call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    /// What the caller of the store asked for.
    pub(crate) op: &'static str,
    pub(crate) effect: Effect,
    pub(crate) deadline: Instant,
    pub(crate) action: &'a str,
}

/// Why a call has no result.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The service said no.
    Answered(Answered),
    /// There is no answer.
    Unanswered(StoreError),
}

impl Failed {
    pub(crate) fn error(self, call: Call<'_>) -> StoreError {
        match self {
            Self::Answered(answered) => answered.error(call.op, call.effect),
            Self::Unanswered(error) => error,
        }
    }
}

/// A table and how to reach it.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) options: Options,
    pub(crate) time: StoreTime,
    pub(crate) seen: Seen,
    credentials: Arc<dyn CredentialsSource>,
    connections: Connections,
    room: Semaphore,
}

impl Link {
    pub(crate) fn new(options: Options) -> Self {
        let credentials = options
            .credentials
            .clone()
            .unwrap_or_else(|| Arc::new(Ambient::new(|name| std::env::var(name).ok())));
        let time = match &options.clock {
            Some(clock) => StoreTime::of(clock.clone()),
            None => StoreTime::following_service(),
        };
        Self {
            time,
            seen: Seen::new(options.claims_seen_max),
            credentials,
            connections: Connections::new(options.endpoint.clone()),
            room: Semaphore::new(options.connections_max),
            options,
        }
    }

    /// When a call that begins now must have ended.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.options.timeout
    }

    /// Calls the service, or says what that means for the caller.
    pub(crate) async fn call(&self, call: Call<'_>, body: &Value) -> Result<Value, StoreError> {
        self.try_call(call, body).await.map_err(|failed| failed.error(call))
    }

    /// Calls the service and leaves it to the caller what an error means.
    pub(crate) async fn try_call(&self, call: Call<'_>, body: &Value) -> Result<Value, Failed> {
        let body = Bytes::from(body.to_string());
        let mut pause = PAUSE_FIRST;
        let mut corrected = false;
        loop {
            let (answered, is_new_time) = match self.send(call, &body).await? {
                (Ok(value), _) => return Ok(value),
                (Err(answered), is_new_time) => (answered, is_new_time),
            };
            if answered.is_about_time() && is_new_time && !corrected {
                corrected = true;
                continue;
            }
            let next = Instant::now() + pause;
            if !answered.is_passing() || next >= call.deadline {
                return Err(Failed::Answered(answered));
            }
            sleep(pause).await;
            pause *= 2;
        }
    }

    /// Sends the call once, and says whether its answer told of another time.
    async fn send(&self, call: Call<'_>, body: &Bytes) -> Result<(Result<Value, Answered>, bool), Failed> {
        let unanswered = |refusal: Refusal, effect| Failed::Unanswered(refusal.error(call.op, effect));
        let preparing = async {
            let room = self.room.acquire().await.expect("the room for calls is never closed");
            let credentials =
                self.credentials.credentials().await.map_err(|why| {
                    Failed::Unanswered(OpenError::Credentials { why: why.to_string() }.into())
                })?;
            Ok::<_, Failed>((room, credentials))
        };
        let late = |_| unanswered(Refusal::TimedOut, Effect::Read);
        let (_room, credentials) = timeout_at(call.deadline, preparing).await.map_err(late)??;

        let sent_at = self.time.steady();
        let target = format!("{TARGET}{}", call.action);
        let host = self.connections.endpoint().authority();
        let region = &self.options.region;
        let request = sign::Request { region, host, target: &target, body };
        let signed = sign::sign(request, &credentials, self.time.to_sign_with());
        let mut request = http::Request::post("/")
            .header("host", host)
            .header("content-type", CONTENT_TYPE)
            .header("x-amz-target", target)
            .header("x-amz-date", signed.date)
            .header("authorization", signed.authorization);
        if let Some(token) = credentials.session_token() {
            request = request.header("x-amz-security-token", token);
        }
        let mut request = request.body(Full::new(body.clone())).map_err(|_| {
            let why = "they hold characters that no header may have".to_owned();
            Failed::Unanswered(OpenError::Credentials { why }.into())
        })?;

        // A connection that was closed while it was kept gives the request back; a new one follows the kept ones.
        loop {
            let (mut sender, is_new) = match self.connections.kept() {
                Some(sender) => (sender, false),
                None => (self.connect(call).await?, true),
            };
            let exchanged = timeout_at(call.deadline, exchange(&mut sender, request)).await;
            match exchanged {
                Err(_elapsed) => return Err(unanswered(Refusal::TimedOut, call.effect)),
                Ok(Err(Unanswered::Lost)) => return Err(unanswered(Refusal::Lost, call.effect)),
                Ok(Err(Unanswered::NotSent(_))) if is_new => {
                    return Err(unanswered(Refusal::NotConnected, Effect::Read));
                }
                Ok(Err(Unanswered::NotSent(again))) => request = *again,
                Ok(Ok((head, body))) => {
                    self.connections.keep(sender);
                    let date = head.headers.get("date").and_then(|date| date.to_str().ok());
                    let is_new_time = date.is_some_and(|date| self.time.hear(date, sent_at));
                    if !head.status.is_success() {
                        return Ok((Err(Answered::read(head.status.as_u16(), &body)), is_new_time));
                    }
                    return serde_json::from_slice(&body)
                        .map(|value| (Ok(value), is_new_time))
                        .map_err(|_| unanswered(Refusal::Reply, call.effect));
                }
            }
        }
    }

    async fn connect(&self, call: Call<'_>) -> Result<crate::connection::Sender, Failed> {
        let refused = |refusal: Refusal| Failed::Unanswered(refusal.error(call.op, Effect::Read));
        match timeout_at(call.deadline, self.connections.connect()).await {
            Ok(Ok(sender)) => Ok(sender),
            Ok(Err(NotConnected::Unreachable)) => Err(refused(Refusal::NotConnected)),
            Ok(Err(NotConnected::Tls)) => Err(Failed::Unanswered(OpenError::Tls.into())),
            Err(_elapsed) => Err(refused(Refusal::TimedOut)),
        }
    }

    /// Reads one record as it is now.
    pub(crate) async fn read(
        &self,
        op: &'static str,
        id: &RecordId,
        deadline: Instant,
    ) -> Result<Result<Option<Held>, item::Unreadable>, StoreError> {
        let found = self.read_item(op, &id.to_string(), deadline).await?;
        Ok(found.map(|item| Held::read(id, &item)).transpose())
    }

    /// Reads one item as it is now.
    pub(crate) async fn read_item(
        &self,
        op: &'static str,
        id: &str,
        deadline: Instant,
    ) -> Result<Option<Value>, StoreError> {
        let body = json!({"TableName": self.options.table, "Key": item::key(id), "ConsistentRead": true});
        let call = Call { op, effect: Effect::Read, deadline, action: "GetItem" };
        let mut answer = self.call(call, &body).await?;
        Ok(answer.get_mut("Item").map(Value::take))
    }
}
