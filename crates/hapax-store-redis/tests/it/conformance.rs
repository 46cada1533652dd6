//! The suite that every store passes, on a server whose clock the test moves: with the claims of Redis 7, with those of
//! 6.2, and with writes that wait for a replica.

use std::sync::Arc;
use std::time::Duration;

use hapax_core::{RecordId, Store};
use hapax_store_redis::{OUTCOME_BYTES_MAX_DEFAULT, RedisStore};
use hapax_testkit::servers::RedisServer;
use hapax_testkit::{Facts, Removal, Rig, Time};

use crate::fixture::options;

struct RedisRig {
    store: Arc<RedisStore>,
    server: RedisServer,
}

impl Rig for RedisRig {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    async fn advance(&self, span: Duration) {
        // The server drops a key in the millisecond after its last one.
        self.server.clock().advance(span + Duration::from_millis(1));
    }

    fn facts(&self) -> Facts {
        Facts {
            lease: Duration::from_secs(30),
            // Nobody waits here, but how much longer an outcome is kept is told without asking the server.
            time: Time::Real,
            removal: Removal::ByItself,
            outcome_bytes: OUTCOME_BYTES_MAX_DEFAULT,
            outcome_bytes_refused: Some(OUTCOME_BYTES_MAX_DEFAULT + 1),
        }
    }

    async fn damage(&self, id: &RecordId) -> bool {
        self.server.command(&["SETRANGE", &format!("hapax:{id}"), "30", "damage"]);
        true
    }
}

fn server() -> RedisServer {
    RedisServer::options().clock().start()
}

mod seven {
    use super::*;

    async fn rig() -> RedisRig {
        let server = server();
        RedisRig { store: Arc::new(options(&server).connect().await.unwrap()), server }
    }

    hapax_testkit::store_suite!(rig);
}

mod six {
    use super::*;

    async fn rig() -> RedisRig {
        let server = server();
        RedisRig { store: Arc::new(options(&server).claim_by_script().connect().await.unwrap()), server }
    }

    hapax_testkit::store_suite!(rig);
}
