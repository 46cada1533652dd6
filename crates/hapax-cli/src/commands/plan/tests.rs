use hapax::MemoryStore;
use hapax_core::Store;
use hapax_store_file::FileStore;
use hapax_testkit::operations::fill;

use super::*;

const HOUR: Duration = Duration::from_secs(3600);
/// Enough records that the fixed size of a store hardly matters.
const RECORDS: u64 = 600;
/// The largest deviation of a figure from the measured one.
const PERCENT_MAX: u64 = 10;

#[track_caller]
fn assert_near(planned: u64, measured: u64, what: &str) {
    let off = planned.abs_diff(measured) * 100 / measured;
    assert!(off <= PERCENT_MAX, "{what}: {planned} planned, {measured} measured");
}

#[test]
fn figures_agree_with_the_stores() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for outcome in [100, 1000, 2048, 4096, 20_000] {
        let memory = MemoryStore::new();
        runtime.block_on(fill(&memory, RECORDS, outcome as usize));
        let measured = runtime.block_on(memory.stats()).unwrap().bytes / RECORDS;
        assert_near(memory_bytes(outcome), measured, &format!("memory, {outcome}"));

        let dir = tempfile::tempdir().unwrap();
        let file = FileStore::options().danger_no_sync().open(dir.path()).unwrap();
        runtime.block_on(fill(&file, RECORDS, outcome as usize));
        let log = file_length(dir.path(), "hapax.db-wal");
        drop(file);
        assert!(log <= FILE_LOG_BYTES, "{log}");
        let measured = file_length(dir.path(), "hapax.db") / RECORDS;
        assert_near(file_bytes(outcome), measured, &format!("file, {outcome}"));
    }
}

fn file_length(dir: &std::path::Path, name: &str) -> u64 {
    dir.join(name).metadata().unwrap().len()
}

#[test]
fn memory_limits_match_the_memory_store() {
    let store = format!("{:?}", MemoryStore::new());
    assert!(store.contains(&format!("records_max: {MEMORY_RECORDS_MAX},")), "{store}");
    assert!(store.contains(&format!("bytes_max: {MEMORY_BYTES_MAX},")), "{store}");
}

#[test]
fn a_plan_counts_the_records_kept_at_a_time() {
    let rate = parse_rate("500/s").unwrap();
    assert_eq!(rate.per(24 * HOUR), 43_200_000);
    assert_eq!(parse_rate("1/h").unwrap().per(Duration::from_secs(1)), 1);
    let [memory, file, redis, postgres, dynamodb] = estimates(43_200_000, 2048);
    // The memory of a file store: its caches, and the cache of finished records in front of it.
    let store = hapax_store_file::memory_bytes_max(43_200_000, file.disk_bytes);
    assert_eq!(file.memory_bytes, store + StoreOptions::default().cache_bytes);
    assert!((64 << 20..128 << 20).contains(&file.memory_bytes), "{file:?}");
    assert!(!memory.fits && file.fits && redis.fits && postgres.fits && dynamodb.fits);
    assert!(file.disk_bytes > 43_200_000 * 2048 && redis.memory_bytes > 43_200_000 * 2048);
    let [memory, file, ..] = estimates(1000, 2048);
    assert!(memory.fits && (1..file.disk_bytes).contains(&file.memory_bytes), "{file:?}");
    let [memory, file, redis, postgres, dynamodb] = estimates(u64::MAX, u64::MAX);
    assert!(!dynamodb.fits && dynamodb.disk_bytes == u64::MAX && postgres.disk_bytes == u64::MAX);
    assert_eq!((memory.memory_bytes, file.disk_bytes, redis.memory_bytes), (u64::MAX, u64::MAX, u64::MAX));
}

#[test]
fn invalid_rates_are_refused_and_sizes_have_units() {
    for text in ["", "500", "500/w", "/s", "-1/s", "1.5/s"] {
        assert!(parse_rate(text).is_err(), "{text}");
    }
    for (bytes, text) in [(0, "-"), (500, "500 B"), (1536, "1.5 KiB"), (3 << 30, "3.0 GiB")] {
        assert_eq!(size(bytes), text);
    }
}
