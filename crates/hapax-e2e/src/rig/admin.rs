//! [`AdminClient`]: a client of a sidecar's admin API, which settles uncertain records.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::http::{HttpConnection, request};
use super::sidecar::TOKEN;

/// Tries of a request while the store does not answer in time, and the pause between them.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

/// A client of the admin API.
pub(crate) struct AdminClient {
    address: SocketAddr,
    connection: HttpConnection,
}

impl AdminClient {
    pub(crate) async fn connect(address: SocketAddr) -> Result<Self> {
        Ok(Self { address, connection: HttpConnection::open(address).await? })
    }

    /// Settles an uncertain record. Where the response is lost, the record is read again.
    pub(crate) async fn settle(&mut self, id: &str, was_applied: bool) -> Result<()> {
        let path = format!("/api/v1/records/{id}");
        let verdict = if was_applied { "applied" } else { "not_applied" };
        let mut was_sent = false;
        for _ in 0..TRIES {
            let found = self.read(&path).await?;
            let record = &found["record"];
            if record["state"] != "uncertain" {
                ensure!(was_sent, "the record is {}", record["state"]);
                return Ok(());
            }
            was_sent = true;
            let change =
                json!({ "version": record["version"], "verdict": verdict, "reason": "the service's log" });
            if self.send("POST", &format!("{path}/settle"), &change.to_string()).await?.is_some() {
                return Ok(());
            }
        }
        bail!("the store takes no settlement")
    }

    /// Records that are in progress or uncertain: id and state of a page of them.
    pub(crate) async fn open_records(&mut self) -> Result<Vec<(String, String)>> {
        let page = self.read("/api/v1/records?state=in_progress,uncertain").await?;
        let records = page["records"].as_array().context("a page has records")?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok(records.iter().map(|record| (text(&record["id"]), text(&record["state"]))).collect())
    }

    /// Reads until the store answers in time.
    async fn read(&mut self, path: &str) -> Result<Value> {
        for _ in 0..TRIES {
            if let Some(found) = self.send("GET", path, "").await? {
                return Ok(found);
            }
        }
        bail!("the store does not answer")
    }

    /// None where the store did not answer in time, or the connection had ended.
    async fn send(&mut self, method: &str, path: &str, body: &str) -> Result<Option<Value>> {
        let host = self.address;
        let fields =
            format!("Host: {host}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n");
        let Ok(reply) = self.connection.exchange(&request(method, path, &fields, body)).await else {
            // The server closes connections that were idle for a while.
            self.connection = HttpConnection::open(self.address).await?;
            return Ok(None);
        };
        if reply.status >= 500 {
            sleep(PAUSE).await;
            return Ok(None);
        }
        ensure!(reply.status == 200, "{} {}", reply.status, String::from_utf8_lossy(&reply.body));
        Ok(Some(serde_json::from_slice(&reply.body)?))
    }
}
