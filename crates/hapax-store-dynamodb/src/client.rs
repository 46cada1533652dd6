//! [`Client`]: sends one signed call at a time to the service, with a deadline, and classifies the result.
//!
//! A call is retried only if the service itself reported that it did nothing (it is busy, or does not accept the
//! signature's time), or if no byte of it was written. If a reply is lost, the caller gets an error and repeats the call with
//! the same nonce.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hapax_core::{RecordId, StoreError};
use http_body_util::Full;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout_at};

use crate::config::Options;
use crate::connection::{ConnectError, Connections, ExchangeError, exchange};
use crate::credentials::{CredentialChain, CredentialsSource, process_context};
use crate::error::{CallFailure, Effect, OpenError, ServiceError};
use crate::item::{self, StoredRecord};
use crate::sightings::Sightings;
use crate::sign::{self, CONTENT_TYPE};
use crate::time::StoreTime;

/// The prefix of all actions' names.
const TARGET: &str = "DynamoDB_20120810.";

/// The first back-off from a busy service; it doubles each time.
const PAUSE_FIRST: Duration = Duration::from_millis(20);

/// One call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    /// The store operation.
    pub(crate) op: &'static str,
    pub(crate) effect: Effect,
    pub(crate) deadline: Instant,
    pub(crate) action: &'a str,
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The service refused it.
    Service(ServiceError),
    /// There was no response.
    NoResponse(StoreError),
}

impl CallError {
    pub(crate) fn error(self, call: Call<'_>) -> StoreError {
        match self {
            Self::Service(answered) => answered.error(call.op, call.effect),
            Self::NoResponse(error) => error,
        }
    }
}

/// A table and the connection to it.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) options: Options,
    pub(crate) time: StoreTime,
    pub(crate) sightings: Sightings,
    credentials: Arc<dyn CredentialsSource>,
    connections: Connections,
    permits: Semaphore,
}

impl Client {
    pub(crate) fn new(options: Options) -> Self {
        let credentials = options.credentials.clone().unwrap_or_else(|| {
            // Less than the call has, so that an error about credentials names their source.
            let limit = options.timeout * 3 / 4;
            Arc::new(CredentialChain::new(process_context(), &options.region, limit))
        });
        let time = match &options.clock {
            Some(clock) => StoreTime::of(clock.clone()),
            None => StoreTime::following_service(),
        };
        Self {
            time,
            sightings: Sightings::new(options.claims_seen_max),
            credentials,
            connections: Connections::new(options.endpoint.clone()),
            permits: Semaphore::new(options.connections_max),
            options,
        }
    }

    /// The deadline of a call that begins now.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.options.timeout
    }

    /// Calls the service; classifies errors.
    pub(crate) async fn call(&self, call: Call<'_>, body: &Value) -> Result<Value, StoreError> {
        self.try_call(call, body).await.map_err(|failed| failed.error(call))
    }

    /// Calls the service and leaves errors to the caller.
    pub(crate) async fn try_call(&self, call: Call<'_>, body: &Value) -> Result<Value, CallError> {
        let body = Bytes::from(body.to_string());
        let mut pause = PAUSE_FIRST;
        let mut corrected = false;
        loop {
            let (answered, is_new_time) = match self.send(call, &body).await? {
                (Ok(value), _) => return Ok(value),
                (Err(answered), is_new_time) => (answered, is_new_time),
            };
            if answered.is_clock_skew() && is_new_time && !corrected {
                corrected = true;
                continue;
            }
            let next = Instant::now() + pause;
            if !answered.is_retryable() || next >= call.deadline {
                return Err(CallError::Service(answered));
            }
            sleep(pause).await;
            pause *= 2;
        }
    }

    /// Sends the call once; also returns whether the response showed another time.
    async fn send(
        &self,
        call: Call<'_>,
        body: &Bytes,
    ) -> Result<(Result<Value, ServiceError>, bool), CallError> {
        let no_response =
            |failure: CallFailure, effect| CallError::NoResponse(failure.error(call.op, effect));
        let preparing = async {
            let permit = self.permits.acquire().await.expect("the semaphore is never closed");
            let credentials = self.credentials.credentials().await.map_err(|why| {
                CallError::NoResponse(OpenError::Credentials { why: why.to_string() }.into())
            })?;
            Ok::<_, CallError>((permit, credentials))
        };
        let late = |_| no_response(CallFailure::TimedOut, Effect::Read);
        let (_permit, credentials) = timeout_at(call.deadline, preparing).await.map_err(late)??;

        let sent_at = self.time.steady();
        let target = format!("{TARGET}{}", call.action);
        let host = self.connections.endpoint().authority();
        let region = &self.options.region;
        let request = sign::Request { region, host, target: &target, body };
        let signed = sign::sign(request, &credentials, self.time.signing_time());
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
            CallError::NoResponse(OpenError::Credentials { why }.into())
        })?;

        // A pooled connection that was closed meanwhile returns the request; after the pooled ones a new one is made.
        loop {
            let (mut sender, is_new) = match self.connections.take_idle() {
                Some(sender) => (sender, false),
                None => (self.connect(call).await?, true),
            };
            let exchanged = timeout_at(call.deadline, exchange(&mut sender, request)).await;
            match exchanged {
                Err(_elapsed) => return Err(no_response(CallFailure::TimedOut, call.effect)),
                Ok(Err(ExchangeError::Lost)) => return Err(no_response(CallFailure::Lost, call.effect)),
                Ok(Err(ExchangeError::NotSent(_))) if is_new => {
                    return Err(no_response(CallFailure::NotConnected, Effect::Read));
                }
                Ok(Err(ExchangeError::NotSent(again))) => request = *again,
                Ok(Ok((head, body))) => {
                    self.connections.put_back(sender);
                    let date = head.headers.get("date").and_then(|date| date.to_str().ok());
                    let is_new_time = date.is_some_and(|date| self.time.observe_date(date, sent_at));
                    if !head.status.is_success() {
                        return Ok((Err(ServiceError::read(head.status.as_u16(), &body)), is_new_time));
                    }
                    return serde_json::from_slice(&body)
                        .map(|value| (Ok(value), is_new_time))
                        .map_err(|_| no_response(CallFailure::Reply, call.effect));
                }
            }
        }
    }

    async fn connect(&self, call: Call<'_>) -> Result<crate::connection::Sender, CallError> {
        let refused = |failure: CallFailure| CallError::NoResponse(failure.error(call.op, Effect::Read));
        match timeout_at(call.deadline, self.connections.connect()).await {
            Ok(Ok(sender)) => Ok(sender),
            Ok(Err(ConnectError::Unreachable)) => Err(refused(CallFailure::NotConnected)),
            Ok(Err(ConnectError::Tls)) => Err(CallError::NoResponse(OpenError::Tls.into())),
            Err(_elapsed) => Err(refused(CallFailure::TimedOut)),
        }
    }

    /// Reads the current state of one record.
    pub(crate) async fn read(
        &self,
        op: &'static str,
        id: &RecordId,
        deadline: Instant,
    ) -> Result<Result<Option<StoredRecord>, item::Unreadable>, StoreError> {
        let found = self.read_item(op, &id.to_string(), deadline).await?;
        Ok(found.map(|item| StoredRecord::read(id, &item)).transpose())
    }

    /// Reads one item consistently.
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
