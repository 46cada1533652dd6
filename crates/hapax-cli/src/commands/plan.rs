//! `hapax plan`: how much memory and disk each store would need for a load. Arithmetic only; a test holds the figures
//! against the stores themselves.

use std::time::Duration;

use serde::Serialize;

use crate::args::Plan;
use crate::config::StoreOptions;
use crate::failure::Failure;
use crate::output::Output;

/// What of a response is kept beside its body: status and headers, of the usual length.
const HEAD_BYTES: u64 = 256;
/// A store is never packed as tightly as a fresh one: what is swept leaves holes that are filled again.
const HEADROOM_PERCENT: u64 = 25;

/// What the memory store counts for a record, beside its outcome.
const MEMORY_RECORD_BYTES: u64 = 384;
/// How much the memory store takes before it refuses.
const MEMORY_RECORDS_MAX: u64 = 1_000_000;
const MEMORY_BYTES_MAX: u64 = 512 << 20;

/// What a record takes in the file store, its indexes included, beside its outcome.
const FILE_RECORD_BYTES: u64 = 267;
/// What goes with an outcome.
const FILE_OUTCOME_BYTES: u64 = 15;
/// Outcomes share a page where they fit; what is larger goes on in pages of its own.
const PAGE_BYTES: u64 = 4096;
const PAGE_ROOM: u64 = 4088;
const CELL_BYTES_MAX: u64 = 4061;
/// What is lost, on average, where an outcome goes on in pages of its own.
const SPILL_BYTES: u64 = 492;
/// The log that changes are written to first. It is kept at this size.
const FILE_LOG_BYTES: u64 = 32 << 20;

/// What a value on a Redis server has beside its outcome: head, seal, and names of the usual length.
const REDIS_VALUE_BYTES: u64 = 165;
/// What the server keeps for each key beside its value: the name, and its entries in two tables.
const REDIS_RECORD_BYTES: u64 = 190;
/// An append-only file is rewritten when it has grown to twice what is alive.
const REDIS_LOG_TIMES: u64 = 2;

/// What a row in a PostgreSQL database takes beside its outcome, its entries in four indexes included.
const POSTGRES_RECORD_BYTES: u64 = 750;
/// What is lost where outcomes do not fill their pages, or are cut into pieces that each have a head and an index entry.
const POSTGRES_OUTCOME_PERCENT: u64 = 125;
/// What DynamoDB counts for an item: a hundred bytes of its own, the names of its attributes, and all values but the
/// outcome, with names of the usual length.
const DYNAMODB_ITEM_BYTES: u64 = 420;
/// A larger outcome is refused.
const DYNAMODB_OUTCOME_BYTES_MAX: u64 = 4 << 20;

/// What one store would need.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct Need {
    store: &'static str,
    records: u64,
    memory_bytes: u64,
    disk_bytes: u64,
    /// Processes that hold the records.
    nodes: u64,
    fits: bool,
    note: &'static str,
}

pub(crate) fn run(plan: &Plan, output: Output) -> Result<(), Failure> {
    let needs = needs(plan.rate.per(plan.retention), plan.body.0);
    if output.json {
        return output.document(&needs);
    }
    let rows = needs.iter().map(|need| {
        vec![
            need.store.to_owned(),
            need.records.to_string(),
            size(need.memory_bytes),
            size(need.disk_bytes),
            need.nodes.to_string(),
            need.note.to_owned(),
        ]
    });
    output.table(Some(&["STORE", "RECORDS", "MEMORY", "DISK", "NODES", "NOTE"]), rows.collect())
}

fn needs(records: u64, body_bytes: u64) -> [Need; 5] {
    let outcome = body_bytes.saturating_add(HEAD_BYTES);
    let memory = with_headroom(records.saturating_mul(memory_bytes(outcome)));
    let fits = records <= MEMORY_RECORDS_MAX && memory <= MEMORY_BYTES_MAX;
    let database = with_headroom(records.saturating_mul(file_bytes(outcome)));
    let postgres = with_headroom(records.saturating_mul(postgres_bytes(outcome)));
    let redis = with_headroom(records.saturating_mul(redis_bytes(outcome)));
    [
        Need {
            store: "memory:",
            records,
            memory_bytes: memory,
            disk_bytes: 0,
            nodes: 1,
            fits,
            note: if fits {
                "forgets everything when its process ends"
            } else {
                "too much: it takes 1000000 records and 512 MiB, then refuses"
            },
        },
        Need {
            store: "file:DIR",
            records,
            memory_bytes: hapax_store_file::memory_bytes_max(records, database)
                .saturating_add(cached_bytes(records, outcome)),
            disk_bytes: database.saturating_add(FILE_LOG_BYTES),
            nodes: 1,
            fits: true,
            note: "one machine; `cargo xtask bench store` tells how fast its disk is",
        },
        Need {
            store: "redis://HOST",
            records,
            memory_bytes: redis,
            disk_bytes: redis.saturating_mul(REDIS_LOG_TIMES),
            nodes: 1,
            fits: true,
            note: "many machines; the disk is for an append-only file",
        },
        Need {
            store: "postgres://HOST/DATABASE",
            records,
            memory_bytes: 0,
            disk_bytes: postgres,
            nodes: 1,
            fits: true,
            note: "many machines; more memory for the server makes it faster",
        },
        Need {
            store: "dynamodb://TABLE",
            records,
            memory_bytes: 0,
            disk_bytes: records.saturating_mul(outcome.saturating_add(DYNAMODB_ITEM_BYTES)),
            nodes: 0,
            fits: outcome <= DYNAMODB_OUTCOME_BYTES_MAX,
            note: "many machines, no server of yours; without sweeps, two days of records more",
        },
    ]
}

/// What a record with an outcome of this size takes in memory.
fn memory_bytes(outcome: u64) -> u64 {
    outcome.saturating_add(MEMORY_RECORD_BYTES)
}

/// What the cache of finished records takes, as large as it is by default. It counts a record as the memory store does.
fn cached_bytes(records: u64, outcome: u64) -> u64 {
    StoreOptions::default().cache_bytes.min(records.saturating_mul(memory_bytes(outcome)))
}

/// What a record with an outcome of this size takes on a disk.
fn file_bytes(outcome: u64) -> u64 {
    let cell = outcome.saturating_add(FILE_OUTCOME_BYTES);
    let outcome = if cell <= CELL_BYTES_MAX {
        PAGE_BYTES / (PAGE_ROOM / cell)
    } else {
        cell.saturating_add(SPILL_BYTES)
    };
    outcome.saturating_add(FILE_RECORD_BYTES)
}

/// What a record with an outcome of this size takes on a Redis server.
fn redis_bytes(outcome: u64) -> u64 {
    let value = outcome.saturating_add(REDIS_VALUE_BYTES);
    // Its allocator hands out memory in steps, four to each doubling.
    let step = value.checked_next_power_of_two().unwrap_or(u64::MAX) / 8;
    value.div_ceil(step).saturating_mul(step).saturating_add(REDIS_RECORD_BYTES)
}

/// What a record with an outcome of this size takes in a PostgreSQL database.
fn postgres_bytes(outcome: u64) -> u64 {
    (outcome.saturating_mul(POSTGRES_OUTCOME_PERCENT) / 100).saturating_add(POSTGRES_RECORD_BYTES)
}

fn with_headroom(bytes: u64) -> u64 {
    bytes.saturating_add(bytes / 100 * HEADROOM_PERCENT)
}

/// A number of things in a length of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rate {
    count: u64,
    each: Duration,
}

impl Rate {
    /// How many come in `span`, rounded up.
    fn per(self, span: Duration) -> u64 {
        let count = u128::from(self.count) * span.as_millis();
        u64::try_from(count.div_ceil(self.each.as_millis())).unwrap_or(u64::MAX)
    }
}

/// Reads a rate: `500/s`, `30000/m`.
pub(crate) fn parse_rate(text: &str) -> Result<Rate, String> {
    let wrong = || "a rate is a number for each s, m, h or d, such as 500/s".to_owned();
    let (count, unit) = text.split_once('/').ok_or_else(wrong)?;
    let each = match unit.trim() {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(wrong()),
    };
    let count = count.trim().parse().map_err(|_| wrong())?;
    Ok(Rate { count, each: Duration::from_secs(each) })
}

const UNITS: [(&str, u64); 5] =
    [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// A number of bytes for people.
fn size(bytes: u64) -> String {
    match UNITS.iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, 1)) => format!("{bytes} {name}"),
        Some((name, unit)) => format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit),
        None => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests;
