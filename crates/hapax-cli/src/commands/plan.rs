//! `hapax plan`: estimates the memory and disk that each store needs for a load. Pure arithmetic; a test compares the
//! figures with the stores.

use std::time::Duration;

use serde::Serialize;

use crate::args::Plan;
use crate::config::StoreOptions;
use crate::failure::Failure;
use crate::output::Output;

/// What is stored of a response beside its body: status and header fields of typical length.
const HEAD_BYTES: u64 = 256;
/// A store in use is larger than a fresh one: swept records leave holes that are reused later.
const HEADROOM_PERCENT: u64 = 25;

/// What the memory store accounts for a record, beside its outcome.
const MEMORY_RECORD_BYTES: u64 = 384;
/// The limits of the memory store, beyond which it refuses claims.
const MEMORY_RECORDS_MAX: u64 = 1_000_000;
const MEMORY_BYTES_MAX: u64 = 512 << 20;

/// The size of a record in the file store, its indexes included, beside its outcome.
const FILE_RECORD_BYTES: u64 = 267;
/// The overhead of an outcome.
const FILE_OUTCOME_BYTES: u64 = 15;
/// Small outcomes share a page; larger ones continue on overflow pages.
const PAGE_BYTES: u64 = 4096;
const PAGE_ROOM: u64 = 4088;
const CELL_BYTES_MAX: u64 = 4061;
/// What is unused, on average, on the overflow pages of an outcome.
const SPILL_BYTES: u64 = 492;
/// The write-ahead log, which is kept at this size.
const FILE_LOG_BYTES: u64 = 32 << 20;

/// The size of a value on a Redis server beside its outcome: head, seal, and names of typical length.
const REDIS_VALUE_BYTES: u64 = 165;
/// What the server keeps for each key beside its value: its name, and its entries in two tables.
const REDIS_RECORD_BYTES: u64 = 190;
/// An append-only file is rewritten when it has grown to twice the size of the live data.
const REDIS_LOG_TIMES: u64 = 2;

/// The size of a row in a PostgreSQL database beside its outcome, its entries in four indexes included.
const POSTGRES_RECORD_BYTES: u64 = 750;
/// The overhead of outcomes that do not fill their pages, or are split into chunks with a header and an index entry each.
const POSTGRES_OUTCOME_PERCENT: u64 = 125;
/// What DynamoDB bills for an item: an overhead of a hundred bytes, the names of its attributes, and all values but the
/// outcome, with names of typical length.
const DYNAMODB_ITEM_BYTES: u64 = 420;
/// A larger outcome is refused.
const DYNAMODB_OUTCOME_BYTES_MAX: u64 = 4 << 20;

/// The estimate for one store.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct Estimate {
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
    let estimates = estimates(plan.rate.per(plan.retention), plan.body.0);
    if output.json {
        return output.document(&estimates);
    }
    let rows = estimates.iter().map(|estimate| {
        vec![
            estimate.store.to_owned(),
            estimate.records.to_string(),
            size(estimate.memory_bytes),
            size(estimate.disk_bytes),
            estimate.nodes.to_string(),
            estimate.note.to_owned(),
        ]
    });
    output.table(Some(&["STORE", "RECORDS", "MEMORY", "DISK", "NODES", "NOTE"]), rows.collect())
}

fn estimates(records: u64, body_bytes: u64) -> [Estimate; 5] {
    let outcome = body_bytes.saturating_add(HEAD_BYTES);
    let memory = with_headroom(records.saturating_mul(memory_bytes(outcome)));
    let fits = records <= MEMORY_RECORDS_MAX && memory <= MEMORY_BYTES_MAX;
    let database = with_headroom(records.saturating_mul(file_bytes(outcome)));
    let postgres = with_headroom(records.saturating_mul(postgres_bytes(outcome)));
    let redis = with_headroom(records.saturating_mul(redis_bytes(outcome)));
    [
        Estimate {
            store: "memory:",
            records,
            memory_bytes: memory,
            disk_bytes: 0,
            nodes: 1,
            fits,
            note: if fits {
                "loses all records when its process ends"
            } else {
                "too much: its limits are 1000000 records and 512 MiB"
            },
        },
        Estimate {
            store: "file:DIR",
            records,
            memory_bytes: hapax_store_file::memory_bytes_max(records, database)
                .saturating_add(cached_bytes(records, outcome)),
            disk_bytes: database.saturating_add(FILE_LOG_BYTES),
            nodes: 1,
            fits: true,
            note: "one machine; `cargo xtask bench store` measures its disk",
        },
        Estimate {
            store: "redis://HOST",
            records,
            memory_bytes: redis,
            disk_bytes: redis.saturating_mul(REDIS_LOG_TIMES),
            nodes: 1,
            fits: true,
            note: "many machines; the disk is for an append-only file",
        },
        Estimate {
            store: "postgres://HOST/DATABASE",
            records,
            memory_bytes: 0,
            disk_bytes: postgres,
            nodes: 1,
            fits: true,
            note: "many machines; faster with more memory for the server",
        },
        Estimate {
            store: "dynamodb://TABLE",
            records,
            memory_bytes: 0,
            disk_bytes: records.saturating_mul(outcome.saturating_add(DYNAMODB_ITEM_BYTES)),
            nodes: 0,
            fits: outcome <= DYNAMODB_OUTCOME_BYTES_MAX,
            note: "many machines, no server to operate; without sweeps, records stay two more days",
        },
    ]
}

/// The size in memory of a record with an outcome of this size.
fn memory_bytes(outcome: u64) -> u64 {
    outcome.saturating_add(MEMORY_RECORD_BYTES)
}

/// The memory of the cache of finished records with its default size. It accounts for records as the memory store does.
fn cached_bytes(records: u64, outcome: u64) -> u64 {
    StoreOptions::default().cache_bytes.min(records.saturating_mul(memory_bytes(outcome)))
}

/// The size on disk of a record with an outcome of this size.
fn file_bytes(outcome: u64) -> u64 {
    let cell = outcome.saturating_add(FILE_OUTCOME_BYTES);
    let outcome = if cell <= CELL_BYTES_MAX {
        PAGE_BYTES / (PAGE_ROOM / cell)
    } else {
        cell.saturating_add(SPILL_BYTES)
    };
    outcome.saturating_add(FILE_RECORD_BYTES)
}

/// The size on a Redis server of a record with an outcome of this size.
fn redis_bytes(outcome: u64) -> u64 {
    let value = outcome.saturating_add(REDIS_VALUE_BYTES);
    // Its allocator has four size classes for each doubling.
    let step = value.checked_next_power_of_two().unwrap_or(u64::MAX) / 8;
    value.div_ceil(step).saturating_mul(step).saturating_add(REDIS_RECORD_BYTES)
}

/// The size in a PostgreSQL database of a record with an outcome of this size.
fn postgres_bytes(outcome: u64) -> u64 {
    (outcome.saturating_mul(POSTGRES_OUTCOME_PERCENT) / 100).saturating_add(POSTGRES_RECORD_BYTES)
}

fn with_headroom(bytes: u64) -> u64 {
    bytes.saturating_add(bytes / 100 * HEADROOM_PERCENT)
}

/// A count per unit of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rate {
    count: u64,
    unit: Duration,
}

impl Rate {
    /// The count in `span`, rounded up.
    fn per(self, span: Duration) -> u64 {
        let count = u128::from(self.count) * span.as_millis();
        u64::try_from(count.div_ceil(self.unit.as_millis())).unwrap_or(u64::MAX)
    }
}

/// Parses a rate: `500/s`, `30000/m`.
pub(crate) fn parse_rate(text: &str) -> Result<Rate, String> {
    let invalid = || "expected a count per s, m, h or d, such as 500/s".to_owned();
    let (count, unit) = text.split_once('/').ok_or_else(invalid)?;
    let unit = match unit.trim() {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(invalid()),
    };
    let count = count.trim().parse().map_err(|_| invalid())?;
    Ok(Rate { count, unit: Duration::from_secs(unit) })
}

const UNITS: [(&str, u64); 5] =
    [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// A number of bytes in its largest unit.
fn size(bytes: u64) -> String {
    match UNITS.iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, 1)) => format!("{bytes} {name}"),
        Some((name, unit)) => format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit),
        None => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests;
