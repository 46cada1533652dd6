//! `redis-benchmark` with the commands of the store, one at a time on each connection.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use hapax_core::{Claim, Store};
use hapax_store_redis::RedisStore;
use hapax_testkit::servers::RedisServer;
use tokio::runtime::Runtime;

use super::{Effort, done, finish};
use crate::bench_store::callers::ask;

/// The placeholder that the program replaces: twelve digits.
const RANDOM: &str = "__rand_int__";

/// So many keys that no two claims collide.
const MANY_KEYS: &str = "1000000000000";

/// Records that wait to be completed. Few enough to hold, and so many that few are completed twice: those are cheaper,
/// which favours the plain side.
const CLAIMED: usize = 400_000;

/// Bytes of a first claim of the records here: head, seal and the name of the operation.
const CLAIM_BYTES: usize = 96 + 16 + 5 + "POST /orders".len();

/// The script by which the store completes records, as it sends it to Redis 7.
const COMPLETION: &str = concat!(
    "#!lua flags=allow-oom\nlocal NEEDS_NO_ROOM = false\n",
    include_str!("../../../hapax-store-redis/src/lua/record.lua"),
    "\n",
    include_str!("../../../hapax-store-redis/src/lua/complete.lua")
);

/// Copies a record to many names that end in the same id, which its seal covers.
const COPIES: &str = "local value, left = redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1])
for number = 0, ARGV[1] - 1 do
  redis.call('SET', string.format('plain:%012d:%s', number, ARGV[2]), value, 'PX', left)
end
return 'OK'";

/// The nonce of the copied record. It is part of a command line, so no byte of it is zero.
const NONCE: [u8; 16] = *b"nonce of a bench";

/// The plain side.
pub(super) struct Plain<'a> {
    server: &'a RedisServer,
    runtime: &'a Runtime,
    store: &'a RedisStore,
    effort: Effort,
    /// The digest of the script.
    completion: String,
    /// Bytes of a finished record.
    finished_bytes: usize,
}

impl<'a> Plain<'a> {
    /// Reads what the store sends from one record that it finishes.
    pub(super) fn new(
        server: &'a RedisServer,
        runtime: &'a Runtime,
        store: &'a RedisStore,
        effort: Effort,
    ) -> Result<Self> {
        let id = [9; 32];
        runtime.block_on(finish(store, id, &done()))?;
        let key = format!("hapax:{}", ask(id).key.id);
        let finished_bytes = server.command(&["STRLEN", &key]).parse().context("a length is a number")?;
        let completion = server.command(&["EVAL", "return redis.sha1hex(ARGV[1])", "0", COMPLETION]);
        let known = server.command(&["SCRIPT", "EXISTS", &completion]);
        ensure!(known == "1", "the store completes records with another script than the one measured here");
        Ok(Self { server, runtime, store, effort, completion, finished_bytes })
    }

    /// First claims per second.
    pub(super) fn claims(&self) -> Result<f64> {
        let (key, value) = (format!("plain:{RANDOM}"), "x".repeat(CLAIM_BYTES));
        self.rate(MANY_KEYS, &["SET", &key, &value, "NX", "GET", "PX", "86400000"])
    }

    /// Completions per second.
    pub(super) fn completions(&self) -> Result<f64> {
        let id = [7; 32];
        let mut claim = ask(id);
        claim.nonce = hapax_core::Nonce::from_bytes(NONCE);
        let claimed = self.runtime.block_on(self.store.claim(&claim))?;
        ensure!(matches!(claimed, Claim::Acquired(_)), "the record to copy was not claimed");
        let id = claim.key.id.to_string();
        let count = CLAIMED.to_string();
        self.server.command(&["EVAL", COPIES, "1", &format!("hapax:{id}"), &count, &id]);

        let outcome = "x".repeat(self.finished_bytes - CLAIM_BYTES);
        let nonce = std::str::from_utf8(&NONCE).context("the nonce is text")?;
        let key = format!("plain:{RANDOM}:{id}");
        let call = ["EVALSHA", &self.completion, "1", &key, nonce, "2", "86400000", &outcome];
        self.rate(&count, &call)
    }

    /// Reads of a finished record per second.
    pub(super) fn gets(&self) -> Result<f64> {
        self.server.command(&["SET", "plain", &"x".repeat(self.finished_bytes)]);
        self.rate("1", &["GET", "plain"])
    }

    fn rate(&self, keys: &str, command: &[&str]) -> Result<f64> {
        let output = Command::new("redis-benchmark")
            .args(["-p", &self.server.port().to_string(), "-P", "1", "-q", "-r", keys])
            .args(["-c", &self.effort.callers.to_string(), "-n", &self.effort.operations.to_string()])
            .args(command)
            .output()
            .context("redis-benchmark cannot be started; install it: apt-get install -y redis-tools")?;
        let said = String::from_utf8_lossy(&output.stdout);
        let (before, _) = said.rsplit_once(" requests per second").with_context(|| {
            format!("redis-benchmark gave no rate: {}", String::from_utf8_lossy(&output.stderr))
        })?;
        before.rsplit(' ').next().and_then(|rate| rate.parse().ok()).context("a rate is a number")
    }
}
