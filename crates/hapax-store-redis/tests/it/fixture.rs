//! A store on its own server, and short helpers for requests to it.

use std::path::Path;
use std::time::Duration;

use hapax_core::{Claim, Recorded, Store};
use hapax_store_redis::{Options, RedisStore};
pub(crate) use hapax_testkit::operations::{RETENTION, acquire, ask, done, finish};
use hapax_testkit::servers::RedisServer;

/// Long enough for a machine that stalls: tests that wait for an answer do not want a timeout.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn options(server: &RedisServer) -> Options {
    // Periodic checks would be counted with the calls of the test.
    RedisStore::options(&server.url()).unwrap().timeout(PATIENCE).check_every(RETENTION)
}

/// Makes a server fail to save to disk, by a folder in place of its file. From then on it refuses writes.
pub(crate) fn fail_to_save(server: &RedisServer) {
    server.command(&["CONFIG", "SET", "save", "3600 100000"]);
    let setting = server.command(&["CONFIG", "GET", "dir"]);
    let folder = setting.lines().nth(1).expect("a name and a value");
    std::fs::create_dir(Path::new(folder).join("dump.rdb")).unwrap();
    server.command(&["BGSAVE"]);
    while !server.command(&["INFO", "persistence"]).contains("rdb_last_bgsave_status:err") {
        std::thread::yield_now();
    }
}

pub(crate) async fn connect(server: &RedisServer) -> RedisStore {
    options(server).connect().await.unwrap()
}

/// The outcome that a retry of the operation gets.
pub(crate) async fn replayed(store: &dyn Store, name: &str) -> Recorded {
    match store.claim(&ask(name)).await.unwrap() {
        Claim::Replay { recorded, .. } => recorded,
        other => panic!("{name} was not replayed: {other:?}"),
    }
}
