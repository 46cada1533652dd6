//! Planted defects that the proof under faults must find, each within one short run on Redis.

use hapax_model::teeth::{Proof, Tooth};

const ENGINE: &str = "crates/hapax/src/engine.rs";

/// Every defect.
pub const TEETH: &[Tooth] = &[
    Tooth {
        name: "the fence is off: a release ignores the owner of the claim",
        file: "crates/hapax-store-redis/src/lua/release.lua",
        find: "if not record or record.nonce ~= ARGV[1] or is_pinned(record) then return 'lost' end\n",
        replace: "if not record then return 'lost' end\n",
        breaks: &["doubles"],
        caught_by: Proof::Chaos,
    },
    Tooth {
        name: "an execution is answered before it is recorded",
        file: ENGINE,
        find: "        let fenced = self.record(job, &hold, &finish, started, RECORD_TRIES).await;\n",
        replace: concat!(
            "        if matches!(finish, Finish::Pin(_)) {\n",
            "            self.record_behind(job, hold, finish, started);\n",
            "            return Ok(Execution::Ran { value, recorded: true });\n",
            "        }\n",
            "        let fenced = self.record(job, &hold, &finish, started, RECORD_TRIES).await;\n",
        ),
        breaks: &["lost"],
        caught_by: Proof::Chaos,
    },
    Tooth {
        // A run whose caller hangs up moves to another task.
        name: "a caller that hangs up frees the key",
        file: ENGINE,
        find: concat!(
            "        match AssertUnwindSafe(async move { work(context).await }).catch_unwind().await {\n",
            "            Ok(ended) => self.finish(job, hold, ended).await,\n",
        ),
        replace: concat!(
            "        let began_in = tokio::task::try_id();\n",
            "        match AssertUnwindSafe(async move { work(context).await }).catch_unwind().await {\n",
            "            Ok(mut ended) => {\n",
            "                if tokio::task::try_id() != began_in {\n",
            "                    ended.finish = Finish::Release(None);\n",
            "                }\n",
            "                self.finish(job, hold, ended).await\n",
            "            }\n",
        ),
        breaks: &["doubles"],
        caught_by: Proof::Chaos,
    },
];
