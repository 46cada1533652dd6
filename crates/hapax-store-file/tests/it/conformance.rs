//! The suite that every store passes, on a clock that the test moves.

use std::sync::Arc;
use std::time::Duration;

use hapax_core::{RecordId, Store};
use hapax_store_file::FileStore;
use hapax_testkit::Rig;

use crate::fixture::Home;

struct FileRig {
    store: Arc<FileStore>,
    home: Home,
}

impl Rig for FileRig {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    async fn advance(&self, span: Duration) {
        self.home.clock.advance(span);
    }

    async fn damage(&self, id: &RecordId) -> bool {
        // SQLite lets another connection write only after a commit, with which all records have left the memtable.
        let damaged = self.home.shell().execute(
            "UPDATE record SET head = zeroblob(length(head)) WHERE hash = ?1",
            [&id.as_bytes()[..16]],
        );
        damaged.unwrap() == 1
    }
}

async fn rig() -> FileRig {
    let home = Home::new();
    FileRig { store: Arc::new(home.open()), home }
}

hapax_testkit::store_suite!(rig);

/// The suite with index entries flushed by every commit.
mod with_a_prompt_index {
    use super::*;

    async fn rig() -> FileRig {
        let home = Home::new();
        let store = FileStore::options().clock(home.clock.clone()).index_after(0).open(home.path()).unwrap();
        FileRig { store: Arc::new(store), home }
    }

    hapax_testkit::store_suite!(rig);
}
